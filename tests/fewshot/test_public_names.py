import doctest
import importlib
import pkgutil

import pytest

import srwm.fewshot
import srwm.vision

MODULES = sorted(
    module.name
    for room in (srwm.fewshot, srwm.vision)
    for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")
    if module.name not in ("srwm.vision._norm_pool_kernels", "srwm.vision._instance_norm_kernels")
)


def test_the_public_names_are_these():
    assert sorted(srwm.vision.__all__) == [
        "BatchNorm",
        "Conv4",
        "DropoutVariant",
        "Impala",
        "InstanceNorm",
        "Norm",
        "Res12",
        "instance_norm_pool_relu",
        "max_pool_bias",
        "norm_pool_relu",
    ]
    assert sorted(srwm.fewshot.__all__) == [
        "BootstrapConfig",
        "FewShotConfig",
        "FewShotEvaluation",
        "FewShotModel",
        "FewShotRecipe",
        "FewShotTaskConfig",
        "FewShotTrainer",
        "ModelConfig",
        "OptimizerConfig",
        "RECIPES",
        "TrainConfig",
        "evaluate",
        "export_model",
        "load_model",
        "recipe",
        "shipped_models",
        "train_run",
    ]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
