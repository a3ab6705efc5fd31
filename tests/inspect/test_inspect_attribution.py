"""Which past steps an output rests on: terms that sum to the output, exactly."""

import pytest
import torch
from watched_layers import CHANGING, LAYERS, SIZE, inputs, resets

from srwm.errors import InputError
from srwm.inspect import Recorder, answer_gradients, attribute
from srwm.nn import SRWM, SelfReferentialLinear, SequenceModel


def recorded(layer, **options):
    """Two calls with resets inside, the second after a state that the recorder did not see come about."""
    x = inputs(3, 9)
    with torch.no_grad():
        _, foreign = layer(inputs(3, 2))
        with Recorder(layer, **options) as recorder:
            _, state = layer(x, reset=resets(3, 9))
            layer(x, state)
            layer(x, foreign, reset=resets(3, 9))
    return recorder.finish()


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("name", LAYERS)
def test_terms_sum_to_the_output(name, every):
    for record in recorded(LAYERS[name](), every=every):
        for row in range(3):
            found = attribute(record, row=row)
            total = found.initial + found.carried + found.past.sum(dim=1)
            assert (total - record.y[row]).abs().max() < 1e-12
            assert torch.equal(found.y, total)


def kept(record, row):
    """What the gate of the y columns leaves at step t, when it is read, of what was written at step s [t, s, h]."""
    steps = len(record.step)
    kept = torch.ones(steps, steps, len(record.heads), dtype=torch.float64)
    if record.forget_gates:
        # A delta rule is read after the decay of its own step, a self-referential matrix before.
        last = 1 if record.kind == "delta_rule" else 0
        for t in range(steps):
            for s in range(t - 1 + last):
                kept[t, s] = (1 - record.forget[row, s + 1 : t + last, :, 0]).prod(dim=0)
    return kept


@pytest.mark.parametrize("name", CHANGING)
def test_a_term_is_what_was_written_weighted_by_the_key(name):
    for record in recorded(LAYERS[name]()):
        found = attribute(record, row=1)
        written = record.write[1][..., : record.columns[0]]
        weight = torch.einsum("thd,shd->tsh", record.read[1], record.key[1])
        steps = torch.arange(len(record.step))
        own = record.kind == "delta_rule"
        seen = (steps <= steps[:, None]) if own else (steps < steps[:, None])
        seen &= record.episode[1] == record.episode[1][:, None]
        expected = torch.einsum("tsh,she->tshe", weight * seen[..., None] * kept(record, row=1), written)
        assert (found.past - expected).abs().max() < 1e-12
        # Rounding; values of Titans have any length, and so has what rounds.
        size = max(1.0, float(written.abs().max())) if "titans" in name else 1.0
        assert (found.past[~seen].abs() < 1e-15 * size).all()


def test_what_an_episode_began_with_is_a_term_of_its_own():
    (record,) = recorded(LAYERS["srwm"]())
    found = [attribute(record, row=row).carried for row in range(3)]
    began = [set(record.start_episode[record.start_row == row].tolist()) for row in range(3)]
    assert any(began)
    for row in range(3):
        for t, episode in enumerate(record.episode[row].tolist()):
            assert bool(found[row][t].abs().max() > 0) == (episode in began[row])


def test_with_gates_what_an_episode_began_with_fades():
    record = recorded(LAYERS["srwm, gated"]())[0]
    fading = record.start_row.tolist().index(1)
    places = (record.episode[1] == record.start_episode[fading]).nonzero()[:, 0]
    assert len(places) > 1
    held = record.start[fading, ..., : record.columns[0]]
    for place in places.tolist():
        wanted = torch.einsum("hd,hde->he", record.read[1, place], held)
        assert (attribute(record, row=1, at=[place]).carried[0] - wanted).abs().max() < 1e-12
        held = held * (1 - record.forget[1, place, :, 0])[:, None, None]


def test_steps_may_be_chosen():
    (record,) = recorded(LAYERS["deltanet"]())
    whole, part = attribute(record, row=2), attribute(record, row=2, at=[8, 3])
    assert part.at.tolist() == [8, 3]
    assert torch.allclose(part.past, whole.past[[8, 3]])
    assert torch.allclose(part.y, whole.y[[8, 3]])


def test_shares_sum_to_one_and_follow_the_output():
    (record,) = recorded(LAYERS["srwm"]())
    found = attribute(record)
    shares = found.shares
    assert shares.shape == (27, 29)
    assert torch.allclose(shares.sum(dim=1), torch.ones(27, dtype=torch.float64))
    along = (found.past[20, 4] * found.y[20]).sum() / found.y[20].square().sum()
    assert torch.isclose(shares[20, 2 + 4], along)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"row": 3}, "row=3; the record has 3 rows"), ({"at": [27]}, r"at=\[27\]; the record has 27 steps")],
)
def test_rows_and_steps_that_are_not_there_are_refused(options, sentence):
    (record,) = recorded(LAYERS["srwm"]())
    with pytest.raises(InputError, match=sentence):
        attribute(record, **options)


def test_without_matrices_there_is_no_attribution():
    (record,) = recorded(LAYERS["srwm"](), matrices=False)
    with pytest.raises(InputError, match="record with matrices=True"):
        attribute(record)


@pytest.mark.parametrize("name", LAYERS)
def test_the_gradient_of_a_score_is_that_of_the_outputs_of_the_heads(name):
    layer, x = LAYERS[name](), inputs(2, 4)
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    direction = torch.randn(layer.output_size, dtype=torch.float64)
    found = list(answer_gradients(layer, lambda: layer(x)[0][:, -1] @ direction).values())[-1]
    # The heads reach the output through one projection, so the gradient is known.
    through = getattr(layer, "out_projection", None)
    expected = direction if through is None else direction @ through.weight
    assert torch.allclose(found[:, -1].flatten(1), expected.expand(2, -1))
    assert found[:, :-1].abs().max() == 0
    assert sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in layer.modules()) == 0


def test_with_a_linear_rest_of_the_model_the_terms_of_a_score_sum_to_the_score():
    layer = SelfReferentialLinear(SIZE, 6, num_heads=2, dtype=torch.float64)
    x = inputs(2, 5)
    with torch.no_grad(), Recorder(layer) as recorder:
        y, _ = layer(x)
    gradient = answer_gradients(layer, lambda: layer(x)[0][:, -1, 3])["layer"]
    terms = attribute(recorder.finish()[0], row=1, at=[4]).toward(gradient[1, 4:5])
    assert torch.isclose(terms.sum(), y[1, 4, 3])


def test_gradients_of_scores_that_no_layer_makes_are_refused():
    layer, x = SRWM(SIZE, 2), torch.randn(2, 3, SIZE)
    with pytest.raises(InputError, match="do not depend on any layer"):
        answer_gradients(layer, lambda: torch.zeros(2))
    with pytest.raises(InputError, match="layer was called twice"):
        answer_gradients(layer, lambda: (layer(x)[0] + layer(x)[0])[:, -1, 0])


def test_gradients_reach_the_layers_below():
    model = SequenceModel(SIZE, 3, memory="srwm", hidden_size=8, num_heads=2, ff_size=8)
    found = answer_gradients(model, lambda: model(torch.randn(2, 4, SIZE))[0][:, -1, 0])
    assert list(found) == ["layers.0.memory", "layers.1.memory"]
    assert found["layers.0.memory"][:, 0].abs().max() > 0
    assert found["layers.1.memory"].shape == (2, 4, 2, 4)
