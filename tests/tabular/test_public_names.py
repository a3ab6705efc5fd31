import doctest
import importlib
import pkgutil

import pytest

import srwm.tabular

MODULES = sorted(module.name for module in pkgutil.walk_packages(srwm.tabular.__path__, "srwm.tabular."))


def test_the_public_names_are_these():
    assert sorted(srwm.tabular.__all__) == [
        "Ensemble",
        "EnsembleState",
        "FeaturesConfig",
        "PriorConfig",
        "RECIPES",
        "Standardised",
        "TabularConfig",
        "TabularEvaluation",
        "TabularModel",
        "TabularModelConfig",
        "TabularState",
        "TabularTrainConfig",
        "Tasks",
        "draw_tasks",
        "evaluate",
        "load_tabular",
        "principal_projection",
        "random_projection",
        "scale_of",
    ]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
