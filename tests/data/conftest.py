"""Where the real packs are, for the tests that need them."""

import os
from pathlib import Path

import pytest

from srwm.data import data_folder

_NAMED = os.environ.get("SRWM_DATA")
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(autouse=True)
def empty_data_folder(monkeypatch, tmp_path_factory):
    """No test reads or writes the user's own data folder by accident."""
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("SRWM_DATA", str(folder))
    return folder


@pytest.fixture
def real_pack(monkeypatch):
    """A function that gives the path of a real pack, or skips the test."""

    def find(name):
        monkeypatch.delenv("SRWM_DATA", raising=False)
        folders = [Path(_NAMED)] if _NAMED else [data_folder(None), _BESIDE]
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        pytest.skip(f"runs where {name} is in the folder that SRWM_DATA names (see `srwm data list`)")

    return find
