"""What the tests of watching share."""

from collections.abc import Iterator

import pytest
import torch

from srwm.errors import InputError
from srwm.rl.procgen.library import find_library


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Tensors here are tiny: threads only wait for each other, for seconds where others use the cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def library():
    """Where ProcGen is; a test that asks for it is skipped where it is not."""
    try:
        return find_library()
    except InputError as error:
        pytest.skip(f"runs where the games of ProcGen are: {error}")
