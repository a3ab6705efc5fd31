"""Dtypes: what comes out in which, and how precise it is."""

import pytest
import torch

from .inputs import assert_agree, assert_within_the_error_of_half_precision, make, solve
from .tolerances import assert_near

HALVES = [torch.bfloat16, torch.float16]


def skip_what_the_interpreter_truncates(backend, dtype):
    if (backend, dtype) == ("triton", torch.bfloat16):
        pytest.skip("runs on a CUDA device, in test_gpu.py: Triton's interpreter cuts bfloat16 off instead of rounding")


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize("t", [0, 1])
@pytest.mark.parametrize("state", [False, True])
def test_y_has_the_dtype_of_the_input_and_the_state_at_least_float32(operator, backend, dtype, t, state):
    problem = make(operator, 1, t, state=state, dtype=dtype)
    wanted = torch.promote_types(dtype, torch.float32)
    for case in (problem, problem.leaves()):
        y, end = case(backend)
        assert (y.dtype, end.dtype) == (dtype, wanted)


def test_gradients_have_the_dtype_of_their_inputs(operator, backend):
    problem = make(operator, t=2)
    cycle = [torch.float16, torch.float32, torch.bfloat16]
    dtypes = {name: cycle[i % 3] for i, name in enumerate(problem.tensors)}
    mixed = problem.but(**{name: tensor.to(dtypes[name]) for name, tensor in problem.tensors.items()})
    found = solve(mixed, backend)
    assert {name: found[f"d {name}"].dtype for name in dtypes} == dtypes


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_inputs_cost_little_more_than_in_the_reference(operator, kernel, dtype):
    skip_what_the_interpreter_truncates(kernel, dtype)
    problem = make(operator, 2, 4, 1, 8, reset=True, dtype=dtype)
    found, reference = (solve(problem, backend) for backend in (kernel, "reference"))
    truth = solve(problem.to(torch.float64), "reference")
    assert_within_the_error_of_half_precision(found, reference, truth)


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_inputs_with_a_float32_state_agree(operator, kernel, dtype):
    # As layers call it: half-precision inputs, float32 parameters and state.
    skip_what_the_interpreter_truncates(kernel, dtype)
    problem = make(operator, dtype=torch.float32)
    problem = problem.but(**{name: tensor.to(dtype) for name, tensor in problem.timed.items()})
    found, reference = (solve(problem, backend) for backend in (kernel, "reference"))
    assert found["y"].dtype == dtype
    assert found["end"].dtype == torch.float32
    assert_within_the_error_of_half_precision(found, reference, solve(problem.to(torch.float64), "reference"))


def test_one_float64_input_makes_the_state_float64(operator, backend):
    problem = make(operator, 1, 3, dtype=torch.float32)
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
