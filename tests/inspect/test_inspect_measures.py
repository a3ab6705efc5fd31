"""What follows from a record: entropies, sizes, ranks, how far a function has moved."""

import doctest
import math
from dataclasses import replace

import pytest
import torch
from rich.console import Console
from watched_layers import CHANGING, LAYERS, SIZE, inputs

import srwm.inspect
import srwm.inspect.recorder
from srwm.errors import InputError, RunError
from srwm.inspect import Inspection, Recorder, inspect_call
from srwm.inspect.measures import effective_rank, entropy, singular_values
from srwm.inspect.summary import summarise, summary_table
from srwm.nn import SRWM, DeltaNet, FakeSRWM, GatedDeltaNet
from srwm.nn.delta_heads import read_delta_heads


def record_of(layer, x=None, **options):
    with torch.no_grad(), Recorder(layer, **options) as recorder:
        layer(inputs() if x is None else x)
    return recorder.finish()[-1]


def test_the_public_names_are_these():
    assert sorted(srwm.inspect.__all__) == [
        "Attribution",
        "Inspection",
        "MatrixRecord",
        "Recorder",
        "answer_gradients",
        "attribute",
        "find_matrices",
        "inspect_call",
        "last_steps",
    ]


@pytest.mark.parametrize("module", [srwm.inspect.recorder, srwm.inspect._sites])
def test_the_example_in_the_docstring_runs(module):
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_effective_rank_of_matrices_that_are_known():
    one_direction = torch.outer(torch.randn(5), torch.randn(3))
    shrinking = torch.diag(torch.tensor([4.0, 2.0, 2.0]))
    shares = torch.tensor([0.5, 0.25, 0.25])
    assert effective_rank(singular_values(one_direction)).item() == pytest.approx(1, abs=1e-4)
    assert effective_rank(singular_values(3 * torch.eye(4))).item() == pytest.approx(4)
    assert effective_rank(singular_values(torch.zeros(4, 2))).item() == 0
    assert effective_rank(singular_values(shrinking)).item() == pytest.approx(math.exp(-(shares * shares.log()).sum()))


def test_entropy_goes_from_a_single_one_to_all_alike_whatever_their_sum():
    assert entropy(torch.tensor([0.0, 2.0, 0.0])).item() == 0
    assert entropy(torch.full((2, 8), 0.1)).tolist() == pytest.approx([math.log(8)] * 2)
    assert entropy(torch.zeros(3)).item() == 0


def test_the_entropy_of_keys_of_unit_length_is_that_of_the_sizes_of_their_entries():
    record = record_of(LAYERS["srwm, gated"]())
    assert record.key.min() < 0
    sizes = record.key.abs() / record.key.abs().sum(dim=-1, keepdim=True)
    assert torch.allclose(record.key_entropy, -(sizes * sizes.log()).sum(dim=-1))
    assert bool((record.query_entropy > 0).all() & (record.query_entropy <= math.log(4)).all())


def test_sizes_and_singular_values_are_those_of_each_part():
    layer = LAYERS["srwm"]()
    record = record_of(layer)
    first = 0
    for place, (part, columns) in enumerate(zip(["y", "q", "k", "beta"], record.columns, strict=True)):
        change = record.change[..., first : first + columns]
        initial = layer.self_referential.weight[..., first : first + columns]
        first += columns
        assert torch.equal(record.change[..., record.columns_of(part)], change)
        assert torch.allclose(record.norm[..., place], change.square().sum((-1, -2)).sqrt())
        assert torch.allclose(record.relative_norm[..., place], record.norm[..., place] / initial.norm(dim=(-1, -2)))
        assert torch.allclose(record.singular_values[part].square().sum(-1).sqrt(), record.norm[..., place])
    assert (record.effective_rank[:, 0] - 1).abs().max() < 1e-6


@pytest.mark.parametrize("name", [name for name in CHANGING if "delta" not in name])
def test_how_far_the_function_moved_is_the_difference_of_its_answers(name):
    record = record_of(LAYERS[name]())
    e = record.columns[0]
    before = torch.einsum("bthd,hde->bthe", record.read, record.weight[..., :e])
    # Every recorded input of the head, of every row, is asked about after every step.
    after = torch.einsum("uvhd,bthde->bthuve", record.read, record.weight[..., :e] + record.change[..., :e])
    difference = (after - before.permute(2, 0, 1, 3)).square().sum((-1, -2, -3)).sqrt()
    assert torch.allclose(record.moved, difference / before.square().sum((0, 1, 3)).sqrt())


def test_a_function_that_doubled_has_moved_by_one():
    record = record_of(LAYERS["srwm"]())
    doubled = replace(record, change=record.weight.expand_as(record.change).clone())
    assert torch.allclose(doubled.moved, torch.ones_like(doubled.moved))


@pytest.mark.parametrize(
    ("kind", "options"), [(DeltaNet, {}), (GatedDeltaNet, {"forget_max": 0.9, "forget_bias": 0.0})]
)
def test_how_far_fast_weights_moved_is_the_difference_of_what_the_layer_answers(kind, options):
    layer, x = kind(SIZE, 2, norm="none", dtype=torch.float64, **options), inputs(2, 5)
    record = record_of(layer, x)
    heads = layer.split_heads(layer.projection(x))
    empty = read_delta_heads(heads, None)
    for t in range(5):
        for row in range(2):
            now = read_delta_heads(heads, record.change[row, t].expand(2, -1, -1, -1))
            moved = (now - empty).square().sum((0, 1, 3)).sqrt() / empty.square().sum((0, 1, 3)).sqrt()
            assert torch.allclose(record.moved[row, t], moved)


def test_a_fixed_matrix_has_moved_nowhere_and_has_no_rates():
    record = record_of(FakeSRWM(SIZE, 2), torch.randn(2, 3, SIZE))
    assert record.moved.abs().max() == record.norm.abs().max() == record.effective_rank.max() == 0
    with pytest.raises(InputError, match="never changes, so it has no learning rates"):
        record.rates_of("y")


def test_rates_belong_to_parts_or_serve_all():
    four, one = record_of(LAYERS["linear"]()), record_of(LAYERS["linear, one rate"]())
    assert torch.equal(four.rates_of("k"), four.beta[..., 2])
    assert torch.equal(one.rates_of("k"), one.beta[..., 0])
    gated = record_of(LAYERS["srwm, gated"]())
    assert torch.equal(gated.rates_of("forget"), gated.rates_of("beta"))
    assert torch.equal(gated.rates_of("forget"), gated.beta[..., 3])
    with pytest.raises(InputError, match="has no part 'fast'; it has y, q, k, beta"):
        four.rates_of("fast")


def test_without_matrices_sizes_are_refused_and_the_rest_is_there():
    record = record_of(LAYERS["srwm"](), matrices=False)
    assert record.key_entropy.shape == (3, 7, 2)
    for name in ("norm", "effective_rank", "moved"):
        with pytest.raises(InputError, match="record with matrices=True"):
            getattr(record, name)


def test_a_change_that_is_not_finite_is_named_with_its_step():
    record = record_of(LAYERS["srwm"]())
    record.change[1, 4, 0, 0, 0] = float("nan")
    with pytest.raises(RunError, match="the change of layer is not finite at step 5"):
        _ = record.effective_rank


def test_the_summary_holds_means_and_ranges():
    layer = SRWM(SIZE, 2)
    _, inspection = inspect_call(layer, [torch.randn(3, 5, SIZE)])
    (found,) = summarise(inspection)
    record = inspection[0]
    rate = record.beta[..., 1]
    assert found["parts"]["q"]["rate"]["mean"] == pytest.approx(rate.mean().item())
    assert found["parts"]["q"]["rate"]["max"] == pytest.approx(rate.max().item())
    assert found["parts"]["beta"]["rank"] == pytest.approx(record.effective_rank[:, -1, :, 3].mean().item())
    assert found["moved"] == pytest.approx(record.moved[:, -1].mean().item())
    assert 0 < found["key_entropy"] <= 1
    assert (found["steps"], found["rows"], found["heads"]) == (5, 3, 2)


def test_the_summary_names_what_the_gates_let_go_of(capsys):
    layer = LAYERS["srwm, gated"]()
    with torch.no_grad():
        _, inspection = inspect_call(layer, [inputs()])
    (found,), (record,) = summarise(inspection), inspection
    for part, gate in (("y", 0), ("q", 1), ("beta", 1), ("forget", 1)):
        gates = record.forget[..., gate]
        assert found["parts"][part]["forget"] == pytest.approx(
            {"mean": gates.mean().item(), "min": gates.min().item(), "max": gates.max().item()}
        )
    Console(width=80).print(summary_table(record))
    shown = " ".join(capsys.readouterr().out.split())
    parts = [
        f"{gate.mean().item():.2%} ({gate.min().item():.2%} to {gate.max().item():.2%}) of {name}"
        for gate, name in zip(record.forget.unbind(-1), ("the y columns", "all others"), strict=True)
    ]
    assert f"Forgotten a step: {', '.join(parts)}." in shown
    assert "inf" not in shown


def test_the_summary_of_a_layer_without_gates_has_no_column_for_them(capsys):
    record = record_of(LAYERS["srwm"]())
    Console(width=120).print(summary_table(record))
    assert "Forgotten" not in capsys.readouterr().out
    assert summarise(Inspection((record,), 1))[0]["parts"]["y"]["forget"] is None


def test_a_record_is_found_by_place_and_by_name():
    _, inspection = inspect_call(SRWM(SIZE, 2), [torch.randn(1, 2, SIZE)])
    assert inspection[0] is inspection["layer"] is inspection[-1]
    with pytest.raises(InputError, match="there is no record 'other'; there are layer, or 0 to 0"):
        inspection["other"]
