"""Which tests run where: `gpu` tests where there is a CUDA device, `nightly` tests when asked for.

Where there is no CUDA device, the Triton kernels run on the CPU in Triton's interpreter.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import jaxtyping
import pytest
import torch

if TYPE_CHECKING:
    from srwm.rl.procgen.library import LibraryFiles

if not torch.cuda.is_available():
    # Triton reads this when a kernel is defined, so it must stand before the first import of one.
    os.environ.setdefault("TRITON_INTERPRET", "1")

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers share the cores; threads of several of them would spend their time waiting for each other.
    torch.set_num_threads(1)


# Whether kernels take long to compile depends on the machine: only the test of what is then logged listens to it.
logging.getLogger("srwm.ops._cpu.notice").propagate = False

# The same examples every time and everywhere, however long one takes.
hypothesis.settings.register_profile("srwm", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("srwm")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    skip = {}
    if not torch.cuda.is_available():
        skip["gpu"] = pytest.mark.skip(reason="runs where torch finds a CUDA device")
    if "nightly" not in config.option.markexpr:
        skip["nightly"] = pytest.mark.skip(reason="runs with -m nightly")
    for item in items:
        for marker, reason in skip.items():
            if item.get_closest_marker(marker):
                item.add_marker(reason)


@pytest.fixture(scope="session")
def in_two_processes() -> Callable[..., None]:
    """Run a script with some arguments in two processes under torchrun."""

    def run(script: Path, *arguments: Path | str) -> None:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
        done = subprocess.run(
            [*torchrun, str(script), *map(str, arguments)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            # Processes that do not agree wait for each other for ever.
            timeout=300,
        )
        assert done.returncode == 0, done.stderr

    return run


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


@pytest.fixture(scope="session")
def library() -> "LibraryFiles":
    """Where ProcGen is; a test that asks for it is skipped where it is not."""
    from srwm.errors import InputError
    from srwm.rl.procgen.library import find_library

    try:
        return find_library()
    except InputError as error:
        pytest.skip(f"runs where the games of ProcGen are: {error}")
