"""Strides, sizes and choices of gradient that a call may come with."""

import pytest
import torch

from .inputs import Case, assert_agree, assert_same, make, normal, random_loss, solve
from .tolerances import assert_near


def transposed(tensor):
    """The same values with the axes in reverse order in memory."""
    axes = tuple(range(tensor.dim()))[::-1]
    return tensor.permute(axes).contiguous().permute(axes)


def spaced(tensor):
    """The same values as every other element of a larger tensor that is NaN elsewhere."""
    large = torch.full((*tensor.shape, 2), float("nan"), dtype=tensor.dtype)
    large[..., 1] = tensor
    return large[..., 1]


def negated(tensor):
    """The same values, in memory with the other sign: as PyTorch leaves `z.conj().imag`."""
    return torch._neg_view(-tensor)


@pytest.mark.parametrize("restride", [transposed, spaced])
def test_strides_do_not_matter(operator, backend, restride):
    problem = make(operator, 2, 2, 2, 3)
    strided = problem.map(restride).with_reset(transposed(torch.tensor([[0, 1], [0, 0]], dtype=torch.bool)))
    assert not any(tensor.is_contiguous() for tensor in strided.tensors.values())
    plain = problem.with_reset(strided.reset.contiguous())
    assert_same(solve(strided, backend), solve(plain, backend))


def test_a_sign_that_is_not_in_memory_is_read(operator, backend):
    problem = make(operator, 2, 2, 2, 3, reset=True)
    lazy = problem.map(negated)
    assert all(tensor.is_neg() for tensor in lazy.leaves().tensors.values())
    assert_same(solve(lazy, backend), solve(problem, backend))


def test_incoming_gradients_may_have_a_sign_that_is_not_in_memory(operator, kernel):
    leaves = make(operator, t=2, reset=True).leaves()
    results = leaves(kernel)
    incoming = [normal(*each.shape, seed=seed) for seed, each in enumerate(results)]
    plain, lazy = (
        torch.autograd.grad(results, list(leaves.tensors.values()), given, retain_graph=True)
        for given in (incoming, [negated(each) for each in incoming])
    )
    assert all(map(torch.equal, lazy, plain))


def test_zeros_that_lie_nowhere_are_zeros(operator, backend):
    problem = make(operator, t=2)
    name = problem.sets_dtype
    zeros = torch.zeros_like(problem.inputs[name])
    nowhere = torch._efficientzerotensor(zeros.shape, dtype=zeros.dtype)
    assert_same(solve(problem.but(**{name: nowhere}), backend), solve(problem.but(**{name: zeros}), backend))


def test_expanded_inputs_are_taken_and_gather_the_sum_of_their_gradients(operator, backend):
    # One value for all rows of the batch and for all heads.
    problem = make(operator, 2, 2, 2, 3)
    one = {"weight": (slice(1),), "state": (slice(1), slice(1))}
    base = problem.but(
        **{name: each[one.get(name, (slice(1), slice(None), slice(1)))] for name, each in problem.tensors.items()}
    )

    def expanded(leaves):
        return problem.but(**{n: each.expand_as(problem.inputs[n]) for n, each in leaves.tensors.items()})(backend)

    def copied(leaves):
        return problem.but(**{n: each.expand_as(problem.inputs[n]).clone() for n, each in leaves.tensors.items()})(
            "reference"
        )

    assert_agree(problem, solve(base, expanded), solve(base, copied), "float64")


def test_incoming_gradients_of_any_strides_are_taken(operator, kernel):
    problem = make(operator, t=2)

    def loss(y, end):
        # The gradient of a plain sum is one number, expanded; that of a permuted product is permuted.
        return y.sin().sum() + end.sum() + (y.permute(3, 2, 1, 0) * normal(*y.shape[::-1], seed=3)).sum()

    assert_agree(problem, solve(problem, kernel, loss), solve(problem, "reference", loss), "float64")


def test_each_input_may_be_without_gradient(operator, kernel):
    problem = make(operator, 1, 2, 1, 3, reset=True)
    expected = solve(problem, "reference")
    for fixed in problem.tensors:
        leaves = problem.leaves(problem.tensors.keys() - {fixed})
        random_loss(*leaves(kernel)).backward()
        for name, tensor in leaves.tensors.items():
            if name == fixed:
                assert tensor.grad is None
            else:
                assert_near(tensor.grad, expected[f"d {name}"], "float64 gradients")


def test_each_input_alone_may_gather_the_gradient(operator, kernel):
    problem = make(operator, 1, 2, 1, 3)
    expected = solve(problem, "reference")
    for name in problem.tensors:
        leaves = problem.leaves([name])
        random_loss(*leaves(kernel)).backward()
        assert_near(leaves.inputs[name].grad, expected[f"d {name}"], "float64 gradients")


def test_results_without_gradient_ask_for_none(operator, backend):
    y, end = make(operator)(backend)
    assert not y.requires_grad
    assert not end.requires_grad


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("empty", ["b", "h"])
def test_no_rows_or_no_heads_give_empty_results(operator, backend, empty, state, reset):
    sizes = {"b": 2, "h": 2, empty: 0}
    problem = make(operator, **sizes, state=state, reset=reset)
    found = solve(problem, backend)
    assert found["y"].shape == (sizes["b"], 4, sizes["h"], 3)
    assert found["end"].shape[:2] == (sizes["b"], sizes["h"])
    for name, tensor in problem.tensors.items():
        assert found[f"d {name}"].shape == tensor.shape
        assert not found[f"d {name}"].any()


@pytest.mark.parametrize("reset", [False, True])
def test_no_steps_give_no_output_and_leave_the_state(operator, backend, reset):
    problem = make(operator, t=0, out=5, reset=reset)
    y, end = problem(backend)
    assert y.shape == (2, 0, 1, 5)
    assert torch.equal(end, problem.inputs["state"])


def test_no_steps_return_a_copy_of_the_state(operator, backend):
    for problem in (make(operator, t=0), make(operator, t=0).leaves()):
        _, end = problem(backend)
        assert end.data_ptr() != problem.inputs["state"].data_ptr()


def test_no_steps_without_a_state_give_the_state_zero(operator, backend):
    problem = make(operator, t=0)
    _, end = problem.but(state=None)(backend)
    assert torch.equal(end, torch.zeros_like(problem.inputs["state"]))


@pytest.mark.parametrize("reset", [False, True])
def test_no_steps_pass_the_gradient_on_to_the_state_alone(operator, backend, reset):
    problem = make(operator, t=0, reset=reset)
    weights = normal(*problem.inputs["state"].shape, seed=3)
    found = solve(problem, backend, lambda y, end: (end * weights).sum())
    assert torch.equal(found["d state"], weights)
    assert all(not found[f"d {name}"].any() for name in problem.tensors if name != "state")


# Sizes of every kind in one call of the compiled backend, which has no slow interpreter.
@pytest.mark.parametrize("out", [1, 2, 17, 50])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 8, 15, 17, 31, 33])
def test_odd_sizes_agree_with_the_reference(operator, d, out):
    problem = make(operator, *Case(2, 3, 2, d, out, rates=4 if d % 2 else 1, reset=True))
    assert_agree(problem, solve(problem, "cpu"), solve(problem, "reference"), "float64")
