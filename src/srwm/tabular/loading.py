"""Trained networks of feature vectors: the one that comes with the package, those of runs, and exported ones."""

from pathlib import Path

import torch

from srwm.runs.loading import load_trained

from .config import TabularConfig
from .network import TabularModel, build_network
from .recipes import KIND

__all__ = ["load_tabular"]


def load_tabular(name: str | Path = "tabular", device: torch.device | str = "cpu") -> TabularModel:
    """Load a trained network.

    Args:
        name: a model that comes with the package, the folder of a run, or of an exported model.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    return load_trained(name, KIND, TabularConfig, lambda config, about: build_network(config), device)[0]
