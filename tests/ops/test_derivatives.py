"""Derivatives: against finite differences, of second order, and in forward mode."""

import functools

import pytest
import torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from .inputs import Problem, make, normal, random_loss
from .tolerances import assert_near

# PyTorch warns of its own way of doing this.
forward_mode = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")


def inputs_of_gradcheck(problem: Problem):
    """A function of tensors that gather gradients, and these tensors."""
    leaves = problem.leaves().tensors

    def function(backend, *tensors):
        return problem.but(**dict(zip(leaves, tensors, strict=True)))(backend)

    return function, tuple(leaves.values())


@pytest.mark.parametrize("rates", [1, 4])
@pytest.mark.parametrize("reset", [False, True])
def test_gradients_of_the_reference_agree_with_finite_differences(operator, rates, reset):
    function, tensors = inputs_of_gradcheck(make(operator, 1, 4, 2, 3, rates=rates, reset=reset))
    assert gradcheck(functools.partial(function, "reference"), tensors)


@pytest.mark.parametrize("rates", [1, 4])
def test_second_derivatives_of_the_reference_agree_with_finite_differences(operator, rates):
    function, tensors = inputs_of_gradcheck(make(operator, 1, 3, 1, 2, rates=rates))
    assert gradgradcheck(functools.partial(function, "reference"), tensors)


def test_gradients_of_the_kernels_agree_with_finite_differences(operator, kernel):
    function, tensors = inputs_of_gradcheck(make(operator, 1, 4, 1, 8, reset=True))
    # In the interpreter along a random direction: a few calls instead of two for each element.
    quick = {"fast_mode": True, "check_undefined_grad": False} if kernel == "triton" else {}
    assert gradcheck(functools.partial(function, kernel), tensors, **quick)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("d", [4, 8, 16, 32, 64])
@pytest.mark.parametrize("t", [1, 2, 11, 150])
def test_gradients_agree_with_finite_differences_at_any_length_and_head_size(operator, t, d, reset):
    function, tensors = inputs_of_gradcheck(make(operator, 1, t, 1, d, reset=reset))
    assert gradcheck(functools.partial(function, "cpu"), tensors, fast_mode=True)


@pytest.mark.parametrize("loss", ["linear", "random"])
def test_a_second_derivative_through_a_kernel_is_refused(operator, kernel, loss):
    problem = make(operator, t=2).leaves()
    y, end = problem(kernel)
    value = random_loss(y, end) if loss == "random" else y.sum() + end.sum()
    leaves = list(problem.tensors.values())
    gradients = torch.autograd.grad(value, leaves, create_graph=True)
    with pytest.raises(RuntimeError, match=f'{operator} was differentiated twice .*backend="reference"'):
        torch.autograd.grad(sum(gradient.square().sum() for gradient in gradients), leaves)


@forward_mode
def test_a_second_derivative_of_the_reference_is_that_of_its_formula(operator):
    problem = make(operator, 1, 2, 1, 2)
    names = list(problem.tensors)

    weights = [normal(*each.shape, seed=seed) for seed, each in enumerate(problem("reference"))]

    def value(*tensors):
        results = problem.but(**dict(zip(names, tensors, strict=True)))("reference")
        return sum((each.sin() * weight).sum() for each, weight in zip(results, weights, strict=True))

    # Backward over backward, against forward over backward.
    tensors = tuple(problem.tensors.values())
    found = torch.autograd.functional.hessian(value, tensors)
    expected = torch.func.hessian(value, tuple(range(len(names))))(*tensors)
    for row, row_expected in zip(found, expected, strict=True):
        for one, two in zip(row, row_expected, strict=True):
            assert_near(one, two, "float64 gradients")


@forward_mode
def test_forward_derivatives_of_the_reference_are_right(operator):
    problem = make(operator, reset=True)
    incoming = [normal(*each.shape, seed=seed) for seed, each in enumerate(problem("reference"))]
    tangents = {name: normal(*tensor.shape, seed=7) for name, tensor in problem.tensors.items()}
    with forward_ad.dual_level():
        dual = problem.but(**{n: forward_ad.make_dual(each, tangents[n]) for n, each in problem.tensors.items()})
        found = [forward_ad.unpack_dual(each).tangent for each in dual("reference")]
    leaves = problem.leaves()
    gradients = torch.autograd.grad(leaves("reference"), list(leaves.tensors.values()), incoming)
    one = sum((a * b).sum() for a, b in zip(found, incoming, strict=True))
    two = sum((a * b).sum() for a, b in zip(gradients, tangents.values(), strict=True))
    assert_near(one, two, "float64 gradients")


@forward_mode
def test_a_forward_derivative_through_a_kernel_is_refused(operator, kernel):
    problem = make(operator)
    name, tensor = next(iter(problem.timed.items()))
    with forward_ad.dual_level(), pytest.raises((RuntimeError, NotImplementedError)):
        problem.but(**{name: forward_ad.make_dual(tensor, torch.ones_like(tensor))})(kernel)
