"""The operators and their backends, for tests of what holds for all of them."""

import pytest
import torch

from srwm.ops import available_backends

from .inputs import OPERATORS, VARIANTS

INTERPRETED = pytest.param(
    "triton",
    marks=pytest.mark.skipif(
        "triton" not in available_backends("cpu"),
        reason="runs in Triton's interpreter: where Triton is installed and torch finds no CUDA device",
    ),
)


@pytest.fixture(params=[*OPERATORS, *VARIANTS])
def operator(request: pytest.FixtureRequest) -> str:
    """An operator, or a variant of one."""
    return request.param


@pytest.fixture(params=["reference", "cpu", INTERPRETED])
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["cpu", INTERPRETED])
def kernel(request: pytest.FixtureRequest) -> str:
    """A backend that is not the reference."""
    return request.param


@pytest.fixture(params=["reference", "cpu"])
def quick_backend(request: pytest.FixtureRequest) -> str:
    """A backend that does not run in the interpreter."""
    return request.param


@pytest.fixture(autouse=True)
def _one_thread():
    """Keep PyTorch's own small operations on one thread: where cores are shared, waking a second takes far longer."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
