import doctest
import importlib
import pkgutil

import pytest

import srwm.continual

MODULES = sorted(module.name for module in pkgutil.walk_packages(srwm.continual.__path__, "srwm.continual."))


def test_the_public_names_are_these():
    assert sorted(srwm.continual.__all__) == [
        "ContinualConfig",
        "ContinualEvaluation",
        "ContinualModel",
        "ContinualRecipe",
        "ContinualTrainConfig",
        "ContinualTrainer",
        "LossConfig",
        "RECIPES",
        "TaskBank",
        "TaskMatrix",
        "TaskSequences",
        "TasksConfig",
        "draw_sequences",
        "evaluate",
        "evaluate_orders",
        "export_continual_model",
        "load_bank",
        "load_continual_model",
        "recipe",
        "train_run",
    ]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
