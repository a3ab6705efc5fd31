"""Gradients when the matrix grows: in float32 they stay near float64 wherever the reference does."""

import dataclasses

import pytest
import torch

from srwm.ops import _checkpoints
from srwm.ops.delta_rule import _library as delta_rule_library
from srwm.ops.self_referential import _library as self_referential_library

from .growth import (
    PARTS,
    decaying,
    growing_keys,
    growing_outputs,
    with_a_large_value,
    with_few_resets,
    with_keys,
    with_normal_keys,
    with_small_inputs,
    worst_error,
)
from .inputs import Problem, assert_agree, make, normal, solve
from .tolerances import TOLERANCES, assert_near

LIMIT = TOLERANCES["float32 under growth gradients"].limit

GROWING = {
    "keys, to 1e12 in 100 steps": lambda: growing_keys(1e12, 1, 100, 2, 16),
    "keys, to 1e12 in 400 steps": lambda: growing_keys(1e12, 1, 400, 1, 8),
    "keys of norm 4": lambda: with_keys(4.0, 1, 20, 2, 16),
    "normal keys": lambda: with_normal_keys(1, 60, 2, 16),
    "a large last value": lambda: with_a_large_value(1e8, -1, 1, 200, 2, 16),
    "a large value": lambda: with_a_large_value(1e8, 70, 1, 200, 2, 16),
    "keys, with resets": lambda: with_few_resets(growing_keys(1e12, 2, 150, 1, 16)),
    "keys, a little forgotten": lambda: decaying(growing_keys(1e12, 1, 100, 2, 16), 0.9),
    "keys, half forgotten": lambda: decaying(with_keys(3.0, 1, 60, 2, 16), 0.3),
    "keys, with resets, a little forgotten": lambda: with_few_resets(decaying(growing_keys(1e12, 2, 150, 1, 16), 0.9)),
    "a large value that is forgotten": lambda: decaying(with_a_large_value(1e8, 70, 1, 200, 2, 16), 0.5),
    "much forgotten": lambda: decaying(make("delta_rule", 2, 200, 2, 16), 0.3),
    "almost all forgotten": lambda: decaying(make("delta_rule", 2, 200, 2, 16), 1e-12),
    "now and then all forgotten": lambda: decaying(make("delta_rule", 2, 200, 2, 16), 0.8, zeros=0.05),
    "from a large state, much forgotten": lambda: decaying(from_a_large_state(1e6, 1, 200, 2, 16), 0.7),
    "outputs, to 1e12 in 150 steps": lambda: growing_outputs(1e12, 1, 150, 2, 16),
    "outputs, to 1e12 in 700 steps": lambda: growing_outputs(1e12, 1, 700, 1, 8, others=-16.0),
    "the whole matrix": lambda: growing_outputs(1e12, 1, 200, 1, 16, others=-4.0),
    "outputs, with resets": lambda: with_few_resets(growing_outputs(1e12, 2, 250, 1, 16), 0.01),
    "small inputs": lambda: with_small_inputs(1e-3, 2, 20, 2, 16),
    "inputs too small for float32": lambda: with_small_inputs(1e-40, 2, 20, 2, 16),
}


def from_a_large_state(size: float, b: int, t: int, h: int, d: int) -> Problem:
    """The delta rule from a state far larger than what it writes."""
    problem = make("delta_rule", b, t, h, d)
    return problem.but(state=size * problem.inputs["state"])


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", GROWING)
def test_gradients_are_right_when_the_matrix_grows(name, part):
    assert worst_error(GROWING[name](), "cpu", PARTS[part]) <= LIMIT


@pytest.mark.nightly
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "grow",
    [lambda: growing_keys(1e12, 1, 10_000, 1, 16), lambda: growing_outputs(1e12, 1, 10_000, 1, 16, others=-20.0)],
    ids=["keys", "outputs"],
)
def test_gradients_are_right_over_ten_thousand_steps(grow, part):
    limit = TOLERANCES["float32 under growth for 10,000 steps gradients"].limit
    assert worst_error(grow(), "cpu", PARTS[part]) <= limit


@pytest.fixture
def short_intervals(monkeypatch):
    monkeypatch.setattr(_checkpoints, "steps_between", lambda rows, columns, decays=False: 5)


@pytest.mark.usefixtures("short_intervals")
@pytest.mark.parametrize("part", ["first half", "all and end state"])
@pytest.mark.parametrize(
    "grow",
    [
        lambda: growing_keys(1e9, 1, 17, 1, 3),
        lambda: with_few_resets(growing_keys(1e9, 2, 17, 1, 3), 0.15),
        lambda: growing_keys(1e9, 1, 12, 1, 20),
        lambda: decaying(growing_keys(1e9, 1, 17, 1, 3), 0.5),
        lambda: with_few_resets(decaying(growing_keys(1e9, 2, 17, 1, 3), 1e-3, zeros=0.1), 0.15),
        lambda: decaying(growing_keys(1e9, 1, 12, 1, 20), 0.1),
        lambda: growing_outputs(1e9, 1, 17, 1, 3),
        lambda: with_few_resets(growing_outputs(1e9, 2, 17, 1, 3), 0.15),
        lambda: growing_outputs(1e9, 1, 12, 1, 20),
    ],
    ids=[
        "keys",
        "keys, resets",
        "keys, wide",
        "decay",
        "decay, resets",
        "decay, wide",
        "outputs",
        "outputs, resets",
        "outputs, wide",
    ],
)
def test_every_kernel_goes_on_from_stored_matrices(grow, part, kernel):
    assert worst_error(grow(), kernel, PARTS[part]) <= LIMIT


@pytest.mark.usefixtures("short_intervals")
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("t", [4, 5, 6, 10, 20])
def test_sequences_about_as_long_as_intervals_agree(operator, kernel, t, reset):
    problem = make(operator, 2, t, 1, 3, out=4, reset=reset)
    assert_agree(problem, solve(problem, kernel), solve(problem, "reference"), "float64")


@pytest.mark.usefixtures("short_intervals")
def test_with_and_without_a_loss_of_the_end_state_the_outputs_count_once(operator, kernel):
    problem = make(operator, 1, 12, 1, 3)

    def of_outputs(y, end):
        return (y * normal(*y.shape, seed=5)).sum()

    def of_both(y, end):
        return of_outputs(y, end) + 0 * end.sum()

    found, expected = solve(problem, kernel, of_both), solve(problem, kernel, of_outputs)
    assert_agree(problem, found, expected, "float64")


def saved_of(problem: Problem, backend: str = "cpu") -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """The vectors that the forward pass keeps, the stored matrices, and the jumps."""
    library = {"self_referential": self_referential_library, "delta_rule": delta_rule_library}[problem.operator]
    options = tuple(problem.options.values())
    inputs = problem.inputs.values()
    _, _, *vectors, checkpoints, jumps = library.forward(*inputs, problem.reset, *options, True, backend)
    kept = vectors if problem.operator == "self_referential" else [*vectors, *problem.timed.values()]
    return kept, checkpoints, jumps


@pytest.mark.parametrize("d", [1, 8, 16, 64, 128])
def test_stored_matrices_take_a_fifth_of_the_vectors_at_most(operator, d):
    vectors, checkpoints, _ = saved_of(make(operator, 1, 1000, 1, d, state=False, dtype=torch.float32))
    assert checkpoints.numel() <= 0.2 * sum(each.numel() for each in vectors)


def test_an_ordinary_matrix_has_no_jumps():
    _, _, jumps = saved_of(make("self_referential", 8, 300, 4, 16, state=False, dtype=torch.float32))
    assert (jumps == -1).all()


@pytest.mark.parametrize("d", [16, 64])
def test_a_matrix_that_decays_like_that_of_a_new_layer_has_no_jumps(d):
    problem = make("delta_rule", 8, 300, 4, d)
    unit = {name: torch.nn.functional.normalize(normal(8, 300, 4, d, seed=i), dim=-1) for i, name in enumerate("qk")}
    decay = torch.full((8, 300, 4), 0.998, dtype=torch.float64)
    _, _, jumps = saved_of(problem.but(**unit, decay=decay).to(torch.float32))
    assert (jumps == -1).all()


# One program for a head, and several, which have to agree on what they note.
@pytest.mark.parametrize(("d", "out"), [(3, 5), (20, 70)])
def test_no_kernel_notes_a_jump_where_there_is_none(operator, kernel, d, out, monkeypatch):
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    torch.use_deterministic_algorithms(True)  # Fills every new empty tensor with what would be taken for jumps.
    try:
        _, _, jumps = saved_of(make(operator, 2, 3, 1, d, out), kernel)
    finally:
        torch.use_deterministic_algorithms(False)
    assert (jumps == -1).all()


@pytest.mark.parametrize("step", [0, 3, 7])
def test_a_step_that_keeps_nothing_is_a_jump(kernel, step):
    problem = make("gated delta_rule", 1, 8, 1, 3)
    decay = torch.ones(1, 8, 1, dtype=torch.float64)
    decay[:, step] = 0.0
    _, _, jumps = saved_of(problem.but(decay=decay), kernel)
    assert jumps.flatten().tolist() == [step]


# More columns than a vector of the CPU holds; in float64 that is eight.
@pytest.mark.parametrize("operator", ["delta_rule", "gated delta_rule"])
@pytest.mark.parametrize("column", range(11))
def test_a_value_that_is_too_large_in_any_one_column_is_a_jump(operator, kernel, column):
    problem = make(operator, 1, 3, 1, 3, 11)
    v = problem.tensors["v"].clone()
    v[:, 1, :, column] = 1e6
    _, _, jumps = saved_of(problem.but(v=v), kernel)
    assert jumps.item() == 1


@pytest.mark.parametrize("column", range(11))
def test_growth_of_any_one_output_is_a_jump(column):
    problem = growing_outputs(1e9, 1, 40, 1, 11)
    others = [each for each in range(11) if each != column]
    weight = problem.tensors["weight"].clone()
    weight[..., others] = 0.0
    _, _, jumps = saved_of(problem.but(weight=weight))
    assert jumps.item() >= 0
    weight[..., column] = 0.0
    _, _, jumps = saved_of(problem.but(weight=weight))
    assert jumps.item() == -1


# The outputs, of which there are three, and the columns of queries, keys, rates and gates.
@pytest.mark.parametrize("column", range(3 + 2 * 4 + 4 + 2))
def test_what_any_one_column_has_to_itself_again_once_its_change_is_forgotten_is_a_jump(kernel, column):
    problem = make("gated self_referential", 1, 3, 1, 4, 3)
    state = torch.zeros_like(problem.tensors["state"])
    _, _, jumps = saved_of(problem.but(state=state), kernel)
    assert jumps.item() == -1
    # The whole matrix is far smaller there than either part of it.
    state[..., column] = (1e-6 - 1) * problem.tensors["weight"][..., column]
    _, _, jumps = saved_of(problem.but(state=state), kernel)
    assert jumps.item() >= 0


# One program for a head, and one for the core and several for the outputs.
@pytest.mark.usefixtures("short_intervals")
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("gates", [1, 2])
@pytest.mark.parametrize(("d", "out"), [(4, 3), (20, 70)])
def test_gradients_agree_where_changes_that_are_forgotten_make_jumps(kernel, d, out, gates, reset):
    problem = make("self_referential", 1, 7, 1, d, out, gates=gates)
    problem = problem.but(state=(1e-6 - 1) * problem.tensors["weight"][None])
    if reset:
        problem = problem.with_reset(torch.arange(7)[None] == 3)
    _, _, jumps = saved_of(problem, kernel)
    assert (jumps[..., 0] >= 0).all()
    assert_agree(problem, solve(problem, kernel), solve(problem, "reference"), "float64")


@pytest.mark.parametrize("gates", [1, 2])
@pytest.mark.parametrize(("d", "out"), [(4, 3), (20, 70)])
def test_gradients_agree_where_a_step_forgets_almost_all(kernel, d, out, gates):
    problem = make("self_referential", 1, 4, 1, d, out, gates=gates)
    # What is kept is a millionth of a millionth, and dividing by it would magnify all that was rounded.
    options = {**problem.options, "forget_max": 1 - 1e-12, "forget_bias": 30.0}
    problem = dataclasses.replace(problem, options=options)
    _, _, jumps = saved_of(problem, kernel)
    assert jumps.item() == 3
    assert_agree(problem, solve(problem, kernel), solve(problem, "reference"), "float64")


def test_what_overflows_later_does_not_spoil_earlier_gradients():
    problem = with_normal_keys(1, 150, 1, 16).to(torch.float32)
    assert not torch.isfinite(problem("cpu")[1]).all()
    found, truth = (
        solve(each, how, PARTS["first tenth"].loss)
        for each, how in ((problem, "cpu"), (problem.to(torch.float64), "reference"))
    )
    for name in ("d q", "d k", "d v", "d beta"):
        assert_near(found[name][:, :15], truth[name][:, :15], "float32 under growth gradients")
