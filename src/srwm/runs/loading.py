"""Trained networks of any experiment, loaded from the folder of a run or of an exported model."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from .config import from_json
from .model_files import build_saved, read_model
from .shipped import find_model

__all__ = ["load_trained"]

M = TypeVar("M", bound=nn.Module)
C = TypeVar("C")


def load_trained(
    name: str | Path,
    experiment: str,
    config_type: type[C],
    build: Callable[[C, Mapping[str, Any]], M],
    device: torch.device | str = "cpu",
) -> tuple[M, C]:
    """Load a trained network, ready to be used, and the recipe that it came from.

    Args:
        name: a model that comes with the package, the folder of a run (its best checkpoint, or its newest one where
            there was no validation), or of an exported model.
        experiment: name of the experiment that it must be of.
        config_type: the class of its configurations.
        build: makes the network of a configuration; what else is said of the model stands beside it.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    saved = read_model(find_model(name, experiment), experiment)
    config = from_json(config_type, saved.config)
    model = build_saved(saved, lambda: build(config, saved.about))
    return model.to(device).eval(), config
