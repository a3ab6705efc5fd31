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
    with pytest.raises(RuntimeError, match=f'{problem.operator} was differentiated twice .*backend="reference"'):
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


def value_of(problem: Problem, backend: str):
    """A function of the first input, a non-linear loss, and that input."""
    name, tensor = next(iter(problem.tensors.items()))
    return lambda given: random_loss(*problem.but(**{name: given})(backend)), tensor


def gradient(problem: Problem, backend: str):
    """By autograd, the gradient of that function."""
    function, tensor = value_of(problem, backend)
    tensor = tensor.clone().requires_grad_()
    return torch.autograd.grad(function(tensor), tensor)[0]


@pytest.mark.parametrize("derivative", [torch.func.grad, torch.func.jacrev])
def test_the_reference_has_the_derivatives_of_torch_func(operator, derivative):
    problem = make(operator, t=2, reset=True)
    function, tensor = value_of(problem, "reference")
    assert_near(derivative(function)(tensor), gradient(problem, "reference"), "float64 gradients")


@forward_mode
@pytest.mark.parametrize("derivative", [torch.func.grad, torch.func.jacrev, torch.func.jacfwd, torch.func.hessian])
def test_the_derivatives_of_torch_func_through_a_kernel_are_refused(operator, kernel, derivative):
    problem = make(operator, 1, 2, 1, 2)
    function, tensor = value_of(problem, kernel)
    with pytest.raises(RuntimeError, match=f'^{problem.operator} .* a fast backend.*pass backend="reference"'):
        derivative(function)(tensor)


def test_vmap_calls_a_kernel_for_each(operator, kernel):
    problem = make(operator, t=2)
    name, tensor = next(iter(problem.tensors.items()))
    several = torch.stack([tensor, -tensor])
    found = torch.func.vmap(lambda given: problem.but(**{name: given})(kernel))(several)
    for i, given in enumerate(several):
        assert all(
            torch.equal(one[i], two) for one, two in zip(found, problem.but(**{name: given})(kernel), strict=True)
        )


def test_several_gradients_at_once_are_those_one_by_one(operator, kernel):
    problem = make(operator, t=2, reset=True).leaves()
    leaves, results = list(problem.tensors.values()), problem(kernel)
    several = [normal(3, *each.shape, seed=seed) for seed, each in enumerate(results)]
    found = torch.autograd.grad(results, leaves, several, is_grads_batched=True, retain_graph=True)
    for i in range(3):
        expected = torch.autograd.grad(results, leaves, [each[i] for each in several], retain_graph=True)
        assert all(torch.equal(one[i], two) for one, two in zip(found, expected, strict=True))
