"""What the tests of continual learning share: as those of few-shot learning."""

import os
from pathlib import Path

import pytest

from fewshot.conftest import _as_torch_was, _no_data, _one_thread, _seed

__all__ = ["_as_torch_was", "_no_data", "_one_thread", "_seed"]


@pytest.fixture
def empty_data_folder_of_continual(_no_data):
    """The data folder of this test, in which nothing lies yet."""
    return Path(os.environ["SRWM_DATA"])
