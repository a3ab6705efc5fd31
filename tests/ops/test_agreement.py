"""The kernels agree with the reference, and the reference with finite differences."""

import functools

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from .inputs import OPERATORS, Case, Problem, Results, assert_agree, make, normal, solve
from .tolerances import assert_near

# Odd and even sizes of everything, powers of two and not, y wider and narrower than a head, one learning rate and four,
# with and without state and resets. The interpreter takes a tenth of a second for one step of one head.
CASES = [
    Case(2, 7, 2, 16),
    Case(1, 1, 3, 24),
    Case(1, 2, 1, 64, state=False),
    Case(1, 63, 1, 8),
    Case(1, 100, 1, 16, rates=1),
    Case(1, 2, 3, 8, rates=1, reset=True),
    Case(1, 3, 1, 1),
    Case(2, 2, 2, 3, state=False, reset=True),
    Case(1, 3, 2, 5, out=16),
    Case(2, 3, 1, 8, out=1),
    Case(1, 2, 1, 8, out=128, state=False),
    Case(1, 2, 1, 24, out=73, rates=1),
    Case(1, 2, 1, 96),
    Case(1, 2, 1, 128, out=120, reset=True),
]


def name_of(case):
    return ",".join(f"{name}={value}" for name, value in case._asdict().items() if value != Case._field_defaults[name])


@functools.cache
def solved(operator: str, case: Case, backend: str) -> Results:
    return solve(make(operator, *case), backend)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_values_agree_with_the_reference(operator, kernel, case):
    found, expected = (solved(operator, case, backend) for backend in (kernel, "reference"))
    for name in ("y", "end"):
        assert_near(found[name], expected[name], "float64 values")


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_every_gradient_agrees_with_the_reference(operator, kernel, case):
    found, expected = (solved(operator, case, backend) for backend in (kernel, "reference"))
    for name in expected.keys() - {"y", "end"}:
        assert_near(found[name], expected[name], "float64 gradients")


@pytest.mark.parametrize("share_of_end", [0.0, 1.0])
def test_the_gradient_of_the_end_state_is_counted_once(operator, kernel, share_of_end):
    problem = make(operator, t=2)

    def loss(y, end):
        of_end = (end * normal(*end.shape, seed=2)).sum()
        return (y * normal(*y.shape, seed=1)).sum() + share_of_end * of_end

    assert_agree(problem, solve(problem, kernel, loss), solve(problem, "reference", loss), "float64")


@pytest.mark.parametrize("use", ["y", "end"])
def test_a_loss_may_use_one_of_the_two_results(operator, kernel, use):
    problem = make(operator, t=2)

    def loss(y, end):
        used = y if use == "y" else end
        return (used.sin() * normal(*used.shape, seed=1)).sum()

    assert_agree(problem, solve(problem, kernel, loss), solve(problem, "reference", loss), "float64")


# No kernel cuts time into tiles, so no length is special; these are where the original kernel's gradients are wrong.
def test_a_sequence_of_300_steps_agrees_in_float64(operator):
    problem = make(operator, 1, 300, 2, 8, reset=True)
    assert_agree(problem, solve(problem, "cpu"), solve(problem, "reference"), "float64")


@pytest.mark.parametrize(("t", "d"), [(480, 16), (1000, 16), (480, 28), (480, 32), (150, 48), (150, 64)])
def test_long_sequences_and_large_heads_agree_in_float32(operator, t, d):
    problem = make(operator, 1, t, 1, d, dtype=torch.float32)
    truth = solve(problem.to(torch.float64), "reference")
    assert_agree(problem, solve(problem, "cpu"), truth, "float32")


@pytest.mark.parametrize("d", [1, 3, 16, 64, 128])
@pytest.mark.parametrize("t", [1, 10])
def test_float32_agrees_with_float64_at_any_head_size(operator, t, d):
    problem = make(operator, 2, t, 2, d, dtype=torch.float32)
    truth = solve(problem.to(torch.float64), "reference")
    assert_agree(problem, solve(problem, "cpu"), truth, "float32")


def test_the_interpreted_kernels_agree_in_float32(operator, kernel):
    problem = make(operator, 1, 4, 2, 5, out=7, dtype=torch.float32, reset=True)
    truth = solve(problem.to(torch.float64), "reference")
    assert_agree(problem, solve(problem, kernel), truth, "float32")


@pytest.fixture(scope="module", params=[*OPERATORS, "gated delta_rule"])
def stream(request):
    """A problem of 100,000 steps, solved in float32 and in float64 by compiled code: the reference keeps matrices."""
    problem = make(request.param, 1, 100_000, 1, 16, dtype=torch.float32)
    if request.param == "self_referential":
        # With inputs as in reinforcement learning. Others can make the matrix grow without bound, by its own maths.
        problem = problem.but(x=problem.inputs["x"].softmax(-1))
    return problem, solve(problem, "cpu"), solve(problem.to(torch.float64), "cpu")


def test_100_000_steps_stay_finite(stream):
    _, found, _ = stream
    assert all(tensor.isfinite().all() for tensor in found.values())


def test_100_000_steps_lose_no_more_than_a_random_walk_of_roundings(stream):
    assert_agree(*stream, "100,000 steps")


def saved_elements(problem: Problem, backend: str) -> int:
    """How many numbers a call keeps for its gradient."""
    sizes = []
    with saved_tensors_hooks(lambda tensor: sizes.append(tensor.numel()) or tensor, lambda tensor: tensor):
        problem.leaves()(backend)
    return sum(sizes)


@pytest.mark.parametrize("reset", [False, True])
def test_a_step_keeps_vectors_for_the_gradient_and_no_matrix(operator, kernel, reset):
    d, out, rates, gates = 8, 8, 4, 2
    short, long = (make(operator, 1, t, 1, d, reset=reset) for t in (2, 6))
    a_step = (saved_elements(long, kernel) - saved_elements(short, kernel)) / 4
    # x, q, k, beta, the difference in all columns, and the reset; or q, k, v, beta, the error and the reset. Gates add
    # a column each, and what they let go of; keys of unit length are kept with what scaled them, and a decay is
    # kept as it came.
    plain = 3 * d + rates + (out + 2 * d + rates) + 1
    vectors = {
        "self_referential": plain,
        "gated self_referential": plain + 2 * gates + 2,
        "delta_rule": 2 * d + 2 * out + 1 + 1,
        "gated delta_rule": 2 * d + 2 * out + 2 + 1,
    }
    assert 0 < a_step <= vectors[operator]


def test_a_step_of_the_reference_keeps_matrices(operator):
    short, long = (make(operator, 1, t, 1, 8) for t in (2, 6))
    assert (saved_elements(long, "reference") - saved_elements(short, "reference")) / 4 > 2 * 8 * 8
