"""What each span of steps wrote into each row of a matrix."""

import pytest
import torch
from PIL import Image
from watched_layers import LAYERS, inputs

from srwm.errors import InputError
from srwm.inspect import inspect_call
from srwm.inspect.span_plot import plot_spans, written_in_spans

SPANS = (0, 0, 1, 1, 1, 2, -1)


def inspection_of(name, steps=7):
    with torch.no_grad():
        return inspect_call(LAYERS[name](), [inputs(2, steps)])[1]


@pytest.mark.parametrize("name", ["srwm", "deltanet"])
def test_what_all_steps_wrote_is_the_change_of_the_matrix(name):
    for record in inspection_of(name):
        found = written_in_spans(record, [0] * 7, row=1)
        change = record.change[1, -1, ..., : record.columns[0]]
        assert torch.allclose(found[0], change.norm(dim=-1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["srwm", "srwm, gated", "gated_deltanet, half forgotten"])
def test_each_span_is_the_sum_of_what_its_steps_wrote_and_what_is_left_of_it(name):
    for record in inspection_of(name):
        found = written_in_spans(record, SPANS)
        for span in range(3):
            total = torch.zeros_like(record.change[0, 0, ..., : record.columns[0]])
            for step in range(7):
                gates = record.forget[0, step, ..., :1, None] if record.forget_gates else 0.0
                total = (1 - gates) * total
                if SPANS[step] == span:
                    write = record.write[0, step, ..., : record.columns[0]]
                    total = total + record.key[0, step][..., None] * write[:, None]
            assert torch.allclose(found[span], total.norm(dim=-1).to(found), rtol=1e-4, atol=1e-6)


def test_spans_that_do_not_fit_get_a_sentence():
    (record, *_) = inspection_of("srwm")
    with pytest.raises(InputError, match="there are 3 spans for 7 recorded steps"):
        written_in_spans(record, [0, 1, 2])
    with pytest.raises(InputError, match="row=2; the record has 2 rows"):
        written_in_spans(record, SPANS, row=2)


def test_the_picture_has_a_panel_for_each_layer_and_a_fixed_one_has_none(tmp_path):
    plot_spans(inspection_of("srwm"), SPANS, ("a", "b", "c"), tmp_path / "tasks.png")
    with Image.open(tmp_path / "tasks.png") as picture:
        assert picture.size[0] > 300
    with pytest.raises(InputError, match="no recorded layer changes its weights"):
        plot_spans(inspection_of("fake_srwm"), SPANS, ("a", "b", "c"), tmp_path / "none.png")
