"""The games, for the tests that play them."""

import pytest

from srwm.errors import InputError
from srwm.rl.procgen.library import find_library


@pytest.fixture(scope="session")
def library():
    """Where ProcGen is; a test that asks for it is skipped where it is not."""
    try:
        return find_library()
    except InputError as error:
        pytest.skip(f"runs where the games of ProcGen are: {error}")
