"""Trained networks of languages on disk: in the folder of a run, or exported to a small folder of their own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from srwm.runs.config import to_json
from srwm.runs.loading import load_trained
from srwm.runs.model_files import write_model

from .config import LanguagesConfig
from .network import StateTracker, build_network

KIND = "languages"


def load_tracker(name: str | Path, device: torch.device | str = "cpu") -> StateTracker:
    """Load a trained network.

    Args:
        name: the folder of a run (its last checkpoint), or of an exported model.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    return load_trained(name, KIND, LanguagesConfig, lambda config, about: build_network(config), device)[0]


def export_tracker(network: StateTracker, folder: Path, *, half: bool, measured: Mapping[str, Any], card: str) -> None:
    """Write a network to a folder of its own.

    Args:
        network: what `load_tracker` gave.
        folder: where; made if it is not there.
        half: whether to round the weights to 16 bits, for half the size.
        measured: what is known about its accuracy, as JSON values.
        card: text of its `README.md`.

    Raises:
        RunError: if it cannot be written.
    """
    write_model(network, folder, kind=KIND, config=to_json(network.config), half=half, measured=measured, card=card)
