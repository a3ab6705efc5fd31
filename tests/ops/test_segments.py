"""A sequence in parts: split, step by step, packed one after another, and reset."""

import pytest
import torch

from .inputs import Problem, assert_agree, make, solve
from .tolerances import assert_near


def in_parts(problem: Problem, backend: str, cuts: list[int]):
    """Run a sequence in parts, each going on from the state the one before it left."""
    ys, state = [], problem.inputs["state"]
    for first, last in zip([0, *cuts], [*cuts, problem.steps], strict=True):
        y, state = problem.cut(first, last, state)(backend)
        ys.append(y)
    return torch.cat(ys, dim=1), state


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("cut", range(6))
def test_split_equals_whole_in_every_bit_of_the_reference(operator, cut, dtype):
    problem = make(operator, 2, 5, 2, 3, reset=True, dtype=dtype)
    y, end = problem("reference")
    y_parts, end_parts = in_parts(problem, "reference", [cut])
    assert torch.equal(y_parts, y)
    assert torch.equal(end_parts, end)


def test_split_equals_whole_at_every_cut(operator, kernel):
    problem = make(operator, 1, 4, 1, 3, dtype=torch.float32)
    y, end = problem(kernel)
    for cut in range(problem.steps + 1):
        y_parts, end_parts = in_parts(problem, kernel, [cut])
        assert_near(y_parts, y, "float32 split")
        assert_near(end_parts, end, "float32 split")


@pytest.mark.parametrize("cut", range(0, 21, 4))
def test_a_longer_split_equals_whole(operator, cut):
    problem = make(operator, 2, 20, 3, 16, dtype=torch.float32, reset=True)
    y, end = problem("cpu")
    y_parts, end_parts = in_parts(problem, "cpu", [cut])
    assert_near(y_parts, y, "float32 split")
    assert_near(end_parts, end, "float32 split")


def test_gradients_through_a_split_equal_those_of_the_whole(operator, kernel):
    problem = make(operator, reset=True)
    found = solve(problem, lambda leaves: in_parts(leaves, kernel, [1, 3]))
    assert_agree(problem, found, solve(problem, kernel), "float64")


def test_steps_one_at_a_time_equal_the_whole(operator, backend):
    problem = make(operator)
    y, end = problem(backend)
    y_steps, end_steps = in_parts(problem, backend, list(range(1, problem.steps)))
    assert_near(y_steps, y, "float64 values")
    assert_near(end_steps, end, "float64 values")


def packed_and_separate(operator: str, lengths: list[int]) -> tuple[Problem, list[int]]:
    """Sequences in one row, each begun by a reset; and where they begin."""
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    problem = make(operator, 1, sum(lengths), 1, 3, state=False)
    reset = torch.zeros(1, problem.steps, dtype=torch.bool)
    reset[0, starts] = True
    return problem.with_reset(reset), starts


@pytest.mark.parametrize("lengths", [[3, 1, 2], [1, 1, 1]])
def test_sequences_packed_with_resets_equal_separate_ones(operator, backend, lengths):
    problem, starts = packed_and_separate(operator, lengths)

    def separate(leaves):
        spans = zip(starts, [*starts[1:], problem.steps], strict=True)
        results = [leaves.with_reset(None).cut(*span, None)(backend) for span in spans]
        return torch.cat([y for y, _ in results], dim=1), results[-1][1]

    assert_agree(problem, solve(problem, backend), solve(problem, separate), "float64")


# In the interpreter NumPy computes, and warns of what is not finite.
allow_infinities = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def reset_at(*steps: int, b: int = 2, t: int = 4) -> torch.Tensor:
    reset = torch.zeros(b, t, dtype=torch.bool)
    reset[:, list(steps)] = True
    return reset


@pytest.mark.parametrize("at", [0, 2, 3])
def test_a_reset_equals_starting_anew_there(operator, backend, at):
    problem = make(operator)
    y, end = problem.with_reset(reset_at(at))(backend)
    y_anew, end_anew = problem.cut(at, None, None)(backend)
    assert_near(y[:, at:], y_anew, "float64 values")
    assert_near(end, end_anew, "float64 values")


@pytest.mark.parametrize("at", [1, 3])
def test_a_reset_leaves_the_steps_before_it_as_they_are(operator, backend, at):
    problem = make(operator)
    y, _ = problem.with_reset(reset_at(at))(backend)
    assert_near(y[:, :at], problem.cut(None, at, problem.inputs["state"])(backend)[0], "float64 values")


def test_resets_at_every_step_leave_single_steps(operator, backend):
    problem = make(operator)
    y, _ = problem.with_reset(torch.ones(2, 4, dtype=torch.bool))(backend)
    for t in range(problem.steps):
        assert_near(y[:, t : t + 1], problem.cut(t, t + 1, None)(backend)[0], "float64 values")


def test_a_mask_without_resets_changes_no_bit(operator, backend):
    problem = make(operator)
    y, end = problem(backend)
    y_masked, end_masked = problem.with_reset(torch.zeros(2, 4, dtype=torch.bool))(backend)
    assert torch.equal(y_masked, y)
    assert torch.equal(end_masked, end)


# Each row by itself: never, first, last, both, all, two in a row, two apart.
PATTERNS = torch.tensor(
    [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0], [0, 1, 0, 1]], dtype=torch.bool
)


@pytest.mark.parametrize(
    ("d", "out", "patterns"),
    [(3, 3, PATTERNS), (20, 40, PATTERNS[4:])],
    ids=["one program a head", "several programs a head"],
)
def test_rows_are_reset_each_at_its_own_steps(operator, kernel, d, out, patterns):
    problem = make(operator, len(patterns), 4, 1, d, out).with_reset(patterns)
    assert_agree(problem, solve(problem, kernel), solve(problem, "reference"), "float64")


def test_resets_of_the_reference_act_on_each_row_alone(operator):
    problem = make(operator, len(PATTERNS), 4, 1, 3).with_reset(PATTERNS)
    y, end = problem("reference")
    for row in range(len(PATTERNS)):
        y_row, end_row = problem.rows(slice(row, row + 1))("reference")
        assert_near(y[row : row + 1], y_row, "float64 values")
        assert_near(end[row : row + 1], end_row, "float64 values")


@pytest.mark.parametrize("at", [0, 2, 3])
def test_no_gradient_crosses_a_reset(operator, backend, at):
    problem = make(operator).with_reset(reset_at(at))
    # What comes after the reset: its outputs and the end state.
    gradients = solve(problem, backend, lambda y, end: (y[:, at:].sin() * y[:, at:]).sum() + (end.sin() * end).sum())
    assert all((gradients[f"d {name}"][:, :at] == 0.0).all() for name in problem.timed)
    assert (gradients["d state"] == 0.0).all()
    # At the reset itself nothing is there that could decay.
    begins = {name: at + (name == "decay") for name in problem.timed}
    assert all((gradients[f"d {name}"][:, at:first] == 0.0).all() for name, first in begins.items())
    assert all((gradients[f"d {name}"][:, first:] != 0.0).any() for name, first in begins.items() if first < 4)


@allow_infinities
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_reset_wipes_out_what_is_not_finite(operator, backend, bad):
    problem = make(operator)
    state = torch.full_like(problem.inputs["state"], bad)
    y, end = problem.but(state=state).with_reset(reset_at(2))(backend)
    y_anew, end_anew = problem.cut(2, None, None)(backend)
    assert_near(y[:, 2:], y_anew, "float64 values")
    assert_near(end, end_anew, "float64 values")


@allow_infinities
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_gradients_after_a_reset_do_not_feel_what_was_not_finite(operator, backend, bad):
    problem = make(operator).with_reset(reset_at(0))
    poisoned = problem.but(state=torch.full_like(problem.inputs["state"], bad))
    assert_agree(problem, solve(poisoned, backend), solve(problem, "reference"), "float64")


@allow_infinities
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_gradients_after_a_reset_do_not_feel_a_bad_input_before_it(operator, backend, bad):
    problem = make(operator).with_reset(reset_at(2))
    poisoned = problem.but(**{name: tensor.clone() for name, tensor in problem.timed.items()})
    for tensor in poisoned.timed.values():
        tensor[:, 1] = bad

    def loss(y, end):
        return (y[:, 2:].sin() * y[:, 2:]).sum() + (end.sin() * end).sum()

    found, expected = solve(poisoned, backend, loss), solve(problem, "reference", loss)
    for name in problem.timed:
        assert_near(found[f"d {name}"][:, 2:], expected[f"d {name}"][:, 2:], "float64 gradients")
