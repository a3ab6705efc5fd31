import doctest
import importlib
import pkgutil

import pytest

import srwm.sequential

MODULES = sorted(module.name for module in pkgutil.walk_packages(srwm.sequential.__path__, "srwm.sequential."))


def test_the_public_names_are_these():
    assert sorted(srwm.sequential.__all__) == [
        "Bank",
        "RECIPES",
        "SequentialConfig",
        "SequentialTrainer",
        "StreamConfig",
        "StreamEvaluation",
        "StreamModel",
        "StreamRecipe",
        "StreamTrainConfig",
        "Streams",
        "draw_streams",
        "evaluate",
        "export_stream_model",
        "load_bank",
        "load_stream_model",
        "recipe",
        "train_run",
    ]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
