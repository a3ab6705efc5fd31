"""Kernels for a CPU that has less than this one; `make test` also runs the tests of operators and layers as on one."""

import os
import subprocess
import sys

import pytest


def width(**environment: str) -> int:
    """Blocks that the kernels of a new process work on together."""
    done = subprocess.run(
        [sys.executable, "-c", "from srwm.ops._cpu import loops; print(loops.WIDE)"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return int(done.stdout)


@pytest.mark.parametrize(("features", "blocks"), [("+avx512f", 4), ("", 2)], ids=["avx512f", "none"])
def test_the_width_of_a_kernel_is_that_of_the_cpu_it_is_compiled_for(features, blocks):
    # Numba can be told of another CPU than this one.
    assert width(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=features) == blocks
