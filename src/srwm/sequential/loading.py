"""Trained models of streams on disk: in the folder of a run, or exported to a small folder of their own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from srwm.errors import InputError
from srwm.runs.config import to_json
from srwm.runs.loading import load_trained
from srwm.runs.model_files import write_model

from .config import SequentialConfig
from .model import StreamModel

KIND = "sequential"


def load_stream_model(name: str | Path, device: torch.device | str = "cpu") -> StreamModel:
    """Load a trained model, ready for streams.

    Args:
        name: a model that comes with the package, the folder of a run (its best checkpoint), or of an exported model.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    return load_trained(name, KIND, SequentialConfig, lambda config, about: build_model(config), device)[0]


def export_stream_model(
    model: StreamModel, folder: Path, *, half: bool, measured: Mapping[str, Any], card: str
) -> None:
    """Write a model to a folder of its own.

    Args:
        model: what `load_stream_model` gave.
        folder: where; made if it is not there.
        half: whether to round the weights to 16 bits, for half the size.
        measured: what is known about its accuracy, as JSON values.
        card: text of its `README.md`.

    Raises:
        RunError: if it cannot be written.
    """
    write_model(model, folder, kind=KIND, config=to_json(model.config), half=half, measured=measured, card=card)


def build_model(config: SequentialConfig) -> StreamModel:
    """Make the network of a recipe.

    Raises:
        InputError: if an option does not fit.
    """
    try:
        return StreamModel(config)
    except ValueError as error:
        raise InputError(f"the model cannot be built: {error}") from error
