"""The compiled backend agrees with the reference on whatever hypothesis draws."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from .inputs import Problem, assert_agree, assert_within_the_error_of_half_precision, make, solve

FLOOR = 0.01
"""A result smaller than this, by cancellation, is compared as if it were so large: the inputs are about 1."""


def strided(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    """The same values, laid out in memory in another way."""
    match kind:
        case "transposed":
            return tensor.transpose(0, -1).contiguous().transpose(0, -1)
        case "spaced":
            return torch.stack([tensor, torch.full_like(tensor, float("nan"))], dim=-1)[..., 0]
        case "offset":
            return torch.cat([torch.full_like(tensor[:1], float("nan")), tensor])[1:]
        case "expanded":
            return tensor[:1].expand_as(tensor)
    return tensor


@st.composite
def problems(draw) -> Problem:
    b, t, h, d = (draw(st.integers(1, most)) for most in (3, 40, 4, 32))
    problem = make(
        draw(st.sampled_from(["self_referential", "delta_rule", "gated delta_rule"])),
        *(b, t, h, d),
        out=draw(st.integers(1, 50)),
        rates=draw(st.sampled_from([1, 4])),
        state=draw(st.booleans()),
        dtype=draw(st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16])),
        seed=draw(st.integers(0, 1000)),
    )
    kinds = st.sampled_from(["contiguous", "transposed", "spaced", "offset", "expanded"])
    problem = problem.map(lambda tensor: strided(tensor, draw(kinds)))
    if draw(st.booleans()):
        share, seed = draw(st.sampled_from([0.05, 0.5, 1.0])), draw(st.integers(0, 1000))
        reset = torch.rand(b, t, generator=torch.Generator().manual_seed(seed)) < share
        problem = problem.with_reset(strided(reset, draw(st.sampled_from(["contiguous", "transposed"]))))
    return problem


def agrees(problem: Problem) -> None:
    found, truth = solve(problem, "cpu"), solve(problem.to(torch.float64), "reference")
    dtype = found["y"].dtype
    assert found["end"].dtype == torch.promote_types(dtype, torch.float32)
    if dtype in (torch.float32, torch.float64):
        assert_agree(problem, found, truth, str(dtype).removeprefix("torch."), FLOOR)
    else:
        assert_within_the_error_of_half_precision(found, solve(problem, "reference"), truth)


# The same examples each time: a failure in one run is a failure in all.
@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(problems())
def test_random_inputs_agree_with_the_reference(problem):
    agrees(problem)


@pytest.mark.nightly
@settings(max_examples=2000, derandomize=True, database=None, deadline=None)
@given(problems())
def test_ten_times_as_many_random_inputs_agree_with_the_reference(problem):
    agrees(problem)
