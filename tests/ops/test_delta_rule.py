"""The delta rule against the paper: its equations, what it is for, and examples worked by hand."""

import numpy as np
import pytest
import torch

from srwm.ops import delta_rule

from .inputs import assert_agree, make, solve
from .tolerances import assert_near


def as_the_paper_writes_it(qs, ks, vs, betas, w):
    """Column vectors: a matrix [e, d] run over queries and keys [t, d], values [t, e] and learning rates [t]."""
    ys = []
    for q, k, v, beta in zip(qs, ks, vs, betas, strict=True):
        v_bar = w @ k
        w = w + beta * np.outer(v - v_bar, k)
        ys.append(w @ q)
    return np.array(ys), w


@pytest.mark.parametrize("e", [1, 3, 7])
def test_agrees_with_the_papers_equations(backend, e):
    b, t, h, d = 2, 3, 2, 3
    problem = make("delta_rule", b, t, h, d, e)
    y, end = problem(backend)
    *timed, state = (tensor.numpy() for tensor in problem.tensors.values())
    for row in range(b):
        for head in range(h):
            ys, w = as_the_paper_writes_it(*(each[row, :, head] for each in timed), state[row, head].T)
            assert_near(y[row, :, head], torch.from_numpy(ys), "float64 values")
            assert_near(end[row, head], torch.from_numpy(w.T.copy()), "float64 values")


def test_two_steps_by_hand(backend):
    # Step 1: nothing is held under (1, 0), half of the way to 2 is 1: the matrix becomes (1, 0). Read by (1, 1): 1.
    # Step 2: 1 is held under (1, 1), all of the way to 3 is 2 more: the matrix becomes (3, 2). Read by (1, 2): 7.
    def one_head(*rows):
        return torch.tensor(rows, dtype=torch.float64)[None, :, None]

    q, k = one_head([1, 1], [1, 2]), one_head([1, 0], [1, 1])
    y, end = delta_rule(q, k, one_head([2], [3]), one_head(0.5, 1.0), backend=backend)
    assert torch.equal(y, one_head([1], [7]))
    assert torch.equal(end, torch.tensor([[[[3], [2]]]], dtype=torch.float64))


def test_the_first_output_is_read_after_the_update(backend):
    problem = make("delta_rule", t=1, state=False)
    q, k, v, beta = problem.timed.values()
    y, _ = problem(backend)
    assert_near(y, beta[..., None] * (q * k).sum(-1, keepdim=True) * v, "float64 values")


def test_a_value_written_in_full_under_a_unit_key_is_read_back(backend):
    problem = make("delta_rule", t=2)
    keys = torch.eye(3, dtype=torch.float64)[[2, 0]].expand(2, 1, 2, 3).transpose(1, 2)
    y, _ = problem.but(q=keys, k=keys, beta=torch.ones_like(problem.inputs["beta"]))(backend)
    assert_near(y, problem.inputs["v"], "float64 values")


def test_a_learning_rate_of_zero_leaves_the_matrix(backend):
    problem = make("delta_rule")
    q, *_, state = problem.tensors.values()
    y, end = problem.but(beta=torch.zeros_like(problem.inputs["beta"]))(backend)
    assert torch.equal(end, state)
    assert_near(y, torch.einsum("bthd,bhde->bthe", q, state), "float64 values")


def test_it_is_linear_in_values_and_state(backend):
    problem = make("delta_rule")
    double = problem.but(v=2 * problem.inputs["v"], state=2 * problem.inputs["state"])
    for twice, once in zip(double(backend), problem(backend), strict=True):
        assert torch.equal(twice, 2 * once)


def test_columns_of_the_matrix_do_not_touch_each_other(backend):
    problem = make("delta_rule", out=5)
    y, end = problem(backend)
    few = problem.but(v=problem.inputs["v"][..., 1:3], state=problem.inputs["state"][..., 1:3])
    for part, whole in zip(few(backend), (y, end), strict=True):
        assert_near(part, whole[..., 1:3], "float64 values")


def test_two_steps_with_a_decay_by_hand(backend):
    # As the two steps above, but before each the matrix is halved. Step 1: 2 is held under (1, 0), of which 1 is left;
    # half of the way to 2 is 0.5: (1.5, 0). Read by (1, 1): 1.5. Step 2: (0.75, 0) is left, all of the way to 3 is 2.25
    # more under (1, 1): (3, 2.25). Read by (1, 2): 7.5.
    def one_head(*rows):
        return torch.tensor(rows, dtype=torch.float64)[None, :, None]

    q, k, state = one_head([1, 1], [1, 2]), one_head([1, 0], [1, 1]), one_head([2], [0]).transpose(1, 2)
    decay = one_head(0.5, 0.5)
    y, end = delta_rule(q, k, one_head([2], [3]), one_head(0.5, 1.0), state, decay=decay, backend=backend)
    assert torch.equal(y, one_head([1.5], [7.5]))
    assert torch.equal(end, torch.tensor([[[[3], [2.25]]]], dtype=torch.float64))


def test_a_decay_of_one_keeps_everything(backend):
    problem = make("delta_rule", reset=True)
    found = solve(problem.but(decay=torch.ones_like(problem.inputs["beta"])), backend)
    expected = solve(problem, "reference")
    assert_agree(problem, {name: found[name] for name in expected}, expected, "float64")


def test_a_decay_of_zero_forgets_as_a_reset_does(backend):
    problem = make("gated delta_rule")
    decay = problem.inputs["decay"].clone()
    decay[:, 2] = 0.0
    found = solve(problem.but(decay=decay), backend)
    reset = torch.zeros(2, problem.steps, dtype=torch.bool)
    reset[:, 2] = True
    expected = solve(problem.with_reset(reset), "reference")
    assert_near(found["y"], expected["y"], "float64 values")
    assert_near(found["end"], expected["end"], "float64 values")
    for name in ("d q", "d k", "d v", "d beta", "d state"):
        assert_near(found[name], expected[name], "float64 gradients")


def test_the_decay_of_a_step_that_keeps_nothing_has_a_gradient(backend):
    # A little more kept would let what was there before through: only a reset cuts that off.
    problem = make("gated delta_rule")
    decay = problem.inputs["decay"].clone()
    decay[:, 2] = 0.0
    problem = problem.but(decay=decay)
    found, expected = solve(problem, backend)["d decay"], solve(problem, "reference")["d decay"]
    assert (expected[:, 2] != 0.0).all()
    assert_near(found, expected, "float64 gradients")


@pytest.mark.parametrize("rate", [1.5, 2.0])
def test_rates_up_to_two_turn_over_what_lies_along_a_unit_key(backend, rate):
    problem = make("delta_rule", t=1)
    key = torch.nn.functional.normalize(problem.inputs["k"], dim=-1)
    nothing = torch.zeros_like(problem.inputs["v"])
    y, _ = problem.but(q=key, k=key, v=nothing, beta=torch.full_like(problem.inputs["beta"], rate))(backend)
    held = torch.einsum("bthd,bhde->bthe", key, problem.inputs["state"])
    assert_near(y, (1 - rate) * held, "float64 values")
