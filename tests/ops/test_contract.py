"""What every backend of every operator promises: it changes nothing, takes any strides and sizes, and keeps precision."""

import pytest
import torch
from torch.autograd import forward_ad

from .inputs import (
    Case,
    assert_agree,
    assert_same,
    assert_within_the_error_of_half_precision,
    make,
    normal,
    random_loss,
    solve,
)
from .tolerances import assert_near

HALVES = [torch.bfloat16, torch.float16]


def cotangents(y, end):
    """Gradients to begin with."""
    return [normal(*each.shape, seed=seed).to(each) for seed, each in enumerate((y, end))]


# Nothing is changed.


@pytest.mark.parametrize("reset", [False, True])
def test_inputs_stay_as_they_are(operator, backend, reset):
    problem = make(operator, reset=reset).leaves()
    tensors = [*problem.tensors.values(), *([problem.reset] if reset else [])]
    before = [(tensor.detach().clone(), tensor._version) for tensor in tensors]
    random_loss(*problem(backend)).backward()
    for tensor, (copy, version) in zip(tensors, before, strict=True):
        assert torch.equal(tensor, copy)
        assert tensor._version == version


def test_results_and_incoming_gradients_stay_as_they_are(operator, backend):
    problem = make(operator, reset=True).leaves()
    results = problem(backend)
    incoming = cotangents(*results)
    before = [(tensor.detach().clone(), tensor._version) for tensor in (*results, *incoming)]
    torch.autograd.grad(results, list(problem.tensors.values()), incoming)
    for tensor, (copy, version) in zip((*results, *incoming), before, strict=True):
        assert torch.equal(tensor, copy)
        assert tensor._version == version


def test_a_second_backward_gives_equal_bits(operator, backend):
    problem = make(operator, reset=True).leaves()
    results = problem(backend)
    incoming, leaves = cotangents(*results), list(problem.tensors.values())
    first = torch.autograd.grad(results, leaves, incoming, retain_graph=True)
    second = torch.autograd.grad(results, leaves, incoming)
    assert all(map(torch.equal, first, second))


def test_equal_inputs_give_equal_bits(operator, backend):
    problem = make(operator, 2, 3, 2, 5, reset=True, dtype=torch.float32)
    assert_same(solve(problem, backend), solve(problem, backend))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_values_are_the_same_bits_without_gradients(operator, backend, mode):
    problem = make(operator, reset=True)
    y, end = problem.leaves()(backend)
    with mode():
        y_plain, end_plain = problem(backend)
    assert torch.equal(y_plain, y)
    assert torch.equal(end_plain, end)


def test_uninitialised_memory_reaches_no_result(operator, backend):
    problem = make(operator, 2, 3, 1, 5, out=2, reset=True)
    expected = solve(problem, backend)
    torch.use_deterministic_algorithms(True)  # Fills every new empty tensor with NaN.
    try:
        assert torch.empty(3).isnan().all()
        assert_same(solve(problem, backend), expected)
        with torch.no_grad():
            y, end = problem(backend)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(y, expected["y"])
    assert torch.equal(end, expected["end"])


# Rows and heads do not touch each other.


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad_row", [0, 1])
def test_nan_in_one_row_reaches_no_other(operator, backend, bad_row):
    problem = make(operator, reset=True)
    poisoned = problem.but(**{name: tensor.clone() for name, tensor in problem.timed.items()})
    for tensor in poisoned.timed.values():
        tensor[bad_row] = float("nan")
    good = 1 - bad_row

    def loss(y, end):
        return random_loss(y[good], end[good])

    found, expected = solve(poisoned, backend, loss), solve(problem, backend, loss)
    for name in ("y", "end", *(f"d {name}" for name in problem.timed), "d state"):
        assert torch.equal(found[name][good], expected[name][good]), name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nan_shows_where_it_shows_in_the_reference(operator, kernel, dtype):
    problem = make(operator, dtype=dtype)
    for name, tensor in problem.timed.items():
        poisoned = tensor.clone()
        poisoned[0, 1].view(-1)[0] = float("nan")
        found, expected = (problem.but(**{name: poisoned})(backend) for backend in (kernel, "reference"))
        assert expected[0].isnan().any() and not expected[0].isnan().all()
        for one, two in zip(found, expected, strict=True):
            assert torch.equal(one.isnan(), two.isnan()), name


# Strides.


def transposed(tensor):
    """The same values with the axes in reverse order in memory."""
    axes = tuple(range(tensor.dim()))[::-1]
    return tensor.permute(axes).contiguous().permute(axes)


def spaced(tensor):
    """The same values as every other element of a larger tensor that is NaN elsewhere."""
    large = torch.full((*tensor.shape, 2), float("nan"), dtype=tensor.dtype)
    large[..., 1] = tensor
    return large[..., 1]


@pytest.mark.parametrize("restride", [transposed, spaced])
def test_strides_do_not_matter(operator, backend, restride):
    problem = make(operator, 2, 3, 2, 3)
    strided = problem.map(restride).with_reset(transposed(torch.tensor([[0, 1, 0], [0, 0, 1]], dtype=torch.bool)))
    assert not any(tensor.is_contiguous() for tensor in strided.tensors.values())
    plain = problem.with_reset(strided.reset.contiguous())
    assert_same(solve(strided, backend), solve(plain, backend))


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
    problem = make(operator)

    def loss(y, end):
        # The gradient of a plain sum is one number, expanded; that of a permuted product is permuted.
        return y.sin().sum() + end.sum() + (y.permute(3, 2, 1, 0) * normal(*y.shape[::-1], seed=3)).sum()

    assert_agree(problem, solve(problem, kernel, loss), solve(problem, "reference", loss), "float64")


# Which inputs gather gradients.


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
    assert not y.requires_grad and not end.requires_grad


@pytest.mark.parametrize("loss", ["linear", "random"])
def test_a_second_derivative_through_a_kernel_is_refused(operator, kernel, loss):
    problem = make(operator).leaves()
    y, end = problem(kernel)
    value = random_loss(y, end) if loss == "random" else y.sum() + end.sum()
    leaves = list(problem.tensors.values())
    gradients = torch.autograd.grad(value, leaves, create_graph=True)
    with pytest.raises(RuntimeError, match=f'{operator} was differentiated twice .*backend="reference"'):
        torch.autograd.grad(sum(gradient.square().sum() for gradient in gradients), leaves)


def test_a_second_derivative_of_the_reference_is_that_of_its_formula(operator):
    problem = make(operator, 1, 2, 1, 2)
    names = list(problem.tensors)

    def value(*tensors):
        return random_loss(*problem.but(**dict(zip(names, tensors, strict=True)))("reference"))

    # Backward over backward, against forward over backward.
    tensors = tuple(problem.tensors.values())
    found = torch.autograd.functional.hessian(value, tensors)
    expected = torch.func.hessian(value, tuple(range(len(names))))(*tensors)
    for row, row_expected in zip(found, expected, strict=True):
        for one, two in zip(row, row_expected, strict=True):
            assert_near(one, two, "float64 gradients")


def test_forward_derivatives_of_the_reference_are_right(operator):
    problem = make(operator, reset=True)
    incoming = cotangents(*problem("reference"))
    tangents = {name: normal(*tensor.shape, seed=7) for name, tensor in problem.tensors.items()}
    with forward_ad.dual_level():
        dual = problem.but(**{n: forward_ad.make_dual(each, tangents[n]) for n, each in problem.tensors.items()})
        found = [forward_ad.unpack_dual(each).tangent for each in dual("reference")]
    leaves = problem.leaves()
    gradients = torch.autograd.grad(leaves("reference"), list(leaves.tensors.values()), incoming)
    one = sum((a * b).sum() for a, b in zip(found, incoming, strict=True))
    two = sum((a * b).sum() for a, b in zip(gradients, tangents.values(), strict=True))
    assert_near(one, two, "float64 gradients")


def test_a_forward_derivative_through_a_kernel_is_refused(operator, kernel):
    problem = make(operator)
    name, tensor = next(iter(problem.timed.items()))
    with forward_ad.dual_level(), pytest.raises((RuntimeError, NotImplementedError)):
        problem.but(**{name: forward_ad.make_dual(tensor, torch.ones_like(tensor))})(kernel)


# Empty sizes.


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("empty", ["b", "h"])
def test_no_rows_or_no_heads_give_empty_results(operator, backend, empty, state, reset):
    problem = make(operator, **{"b": 2, "h": 2, empty: 0}, state=state, reset=reset)
    found = solve(problem, backend)
    assert found["y"].shape == make(operator, **{"b": 2, "h": 2})("reference")[0].shape[:0] + found["y"].shape
    assert found["y"].numel() == found["end"].numel() == 0
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


# Dtypes.


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize("t", [0, 2])
@pytest.mark.parametrize("state", [False, True])
def test_y_has_the_dtype_of_the_input_and_the_state_at_least_float32(operator, backend, dtype, t, state):
    problem = make(operator, t=t, state=state, dtype=dtype)
    wanted = torch.promote_types(dtype, torch.float32)
    for case in (problem, problem.leaves()):
        y, end = case(backend)
        assert (y.dtype, end.dtype) == (dtype, wanted)


def test_gradients_have_the_dtype_of_their_inputs(operator, backend):
    problem = make(operator, t=2)
    dtypes = dict(zip(problem.tensors, [torch.float16, torch.float32, torch.bfloat16, torch.float32, torch.float32]))
    mixed = problem.but(**{name: tensor.to(dtypes[name]) for name, tensor in problem.tensors.items()})
    found = solve(mixed, backend)
    assert {name: found[f"d {name}"].dtype for name in dtypes} == dtypes


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_inputs_cost_little_more_than_in_the_reference(operator, kernel, dtype):
    problem = make(operator, 2, 4, 1, 8, reset=True, dtype=dtype)
    found, reference = (solve(problem, backend) for backend in (kernel, "reference"))
    truth = solve(problem.to(torch.float64), "reference")
    assert_within_the_error_of_half_precision(found, reference, truth)


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_inputs_with_a_float32_state_agree(operator, kernel, dtype):
    """As layers call it: half-precision inputs, float32 parameters and state."""
    problem = make(operator, dtype=torch.float32)
    problem = problem.but(**{name: tensor.to(dtype) for name, tensor in problem.timed.items()})
    found, reference = (solve(problem, backend) for backend in (kernel, "reference"))
    assert found["y"].dtype == dtype
    assert found["end"].dtype == torch.float32
    assert_within_the_error_of_half_precision(found, reference, solve(problem.to(torch.float64), "reference"))


def test_one_float64_input_makes_the_state_float64(operator, backend):
    problem = make(operator, dtype=torch.float32)
    for name, tensor in problem.tensors.items():
        mixed = problem.but(**{name: tensor.double()})
        y, end = mixed(backend)
        assert y.dtype == (torch.float64 if name == problem.sets_dtype else torch.float32)
        assert end.dtype == torch.float64
        # The recurrence runs in float64, too: its end state is as exact as that of the float64 problem.
        assert_near(end, mixed.to(torch.float64)("reference")[1], "float64 values")


def test_mixed_dtypes_agree_with_the_reference(operator, kernel):
    problem = make(operator, dtype=torch.float32)
    problem = problem.but(state=problem.inputs["state"].double())
    found, truth = solve(problem, kernel), solve(problem.to(torch.float64), "reference")
    assert_agree(problem, found, truth, "float32")


# Sizes of every kind in one call of the compiled backend, which has no slow interpreter.
@pytest.mark.parametrize("out", [1, 2, 17, 50])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 8, 15, 17, 31, 33])
def test_odd_sizes_agree_with_the_reference(operator, d, out):
    problem = make(operator, *Case(2, 3, 2, d, out, rates=4 if d % 2 else 1, reset=True))
    assert_agree(problem, solve(problem, "cpu"), solve(problem, "reference"), "float64")
