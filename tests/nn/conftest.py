"""What the tests of the layers share."""

from collections.abc import Iterator

import jaxtyping
import pytest
import torch

from srwm.nn import registry


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Tensors here are tiny: threads only wait for each other, for seconds where others use the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def as_installed() -> Iterator[None]:
    """Switch off the shape checks of the test run, so that a call behaves as it does for a user."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Forget what was compiled: the compiler counts how often one function is compiled anew, and gives up."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture(autouse=True)
def no_names_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the memories that a test registers."""
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
