import doctest
import importlib
import pkgutil

import pytest

import srwm.languages

MODULES = sorted(module.name for module in pkgutil.walk_packages(srwm.languages.__path__, "srwm.languages."))


def test_the_public_names_are_these():
    assert sorted(srwm.languages.__all__) == [
        "CurriculumConfig",
        "LanguagesConfig",
        "LanguagesEvaluation",
        "LanguagesRecipe",
        "LanguagesTrainConfig",
        "LanguagesTrainer",
        "NetworkConfig",
        "RECIPES",
        "Sequences",
        "StateTracker",
        "TASKS",
        "Task",
        "TaskConfig",
        "WarmupAdamConfig",
        "alternating_group",
        "cups",
        "draw_sequences",
        "evaluate",
        "export_tracker",
        "find_task",
        "group_product",
        "load_tracker",
        "numpy_task",
        "recipe",
        "register_task",
        "sum_modulo",
        "symmetric_group",
        "train_run",
    ]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
