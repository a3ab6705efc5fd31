"""What the folder of a sweep of stand-in runs tells."""

import time

import pytest


def starts(folder):
    """How often each run was started, in the order of the names."""
    return [path.stat().st_size for path in sorted(folder.glob("runs/*/starts"))]


def count(folder, name):
    """How many runs have a file of this name."""
    return sum(1 for _ in folder.glob(f"runs/*/{name}"))


def wait_until(condition):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    pytest.fail("it did not happen within a minute")
