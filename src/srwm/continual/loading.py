"""Trained models of continual learning on disk: in the folder of a run, or exported to a small folder of their own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from srwm.errors import InputError
from srwm.runs.config import to_json
from srwm.runs.loading import load_trained
from srwm.runs.model_files import write_model

from .config import ContinualConfig
from .model import ContinualModel

KIND = "continual"


def load_continual_model(name: str | Path, device: torch.device | str = "cpu") -> ContinualModel:
    """Load a trained model, ready to learn task after task.

    Args:
        name: a model that comes with the package, the folder of a run (its best checkpoint), or of an exported model.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    return load_trained(name, KIND, ContinualConfig, lambda config, about: build_model(config), device)[0]


def export_continual_model(
    model: ContinualModel, folder: Path, *, half: bool, measured: Mapping[str, Any], card: str
) -> None:
    """Write a model to a folder of its own.

    Args:
        model: what `load_continual_model` gave.
        folder: where; made if it is not there.
        half: whether to round the weights to 16 bits, for half the size.
        measured: what is known about its accuracy, as JSON values.
        card: text of its `README.md`.

    Raises:
        RunError: if it cannot be written.
    """
    write_model(model, folder, kind=KIND, config=to_json(model.config), half=half, measured=measured, card=card)


def build_model(config: ContinualConfig) -> ContinualModel:
    """Make the network of a recipe.

    Raises:
        InputError: if an option does not fit.
    """
    try:
        return ContinualModel(config)
    except ValueError as error:
        raise InputError(f"the model cannot be built: {error}") from error


def load_initial_weights(model: ContinualModel, name: str) -> None:
    """Give a new model the weights of a trained one.

    Args:
        model: the new model.
        name: as in `load_continual_model`.

    Raises:
        InputError: if there is no such model, or a weight has another size.
    """
    trained = load_continual_model(name).state_dict()
    own = model.state_dict()
    for key, value in own.items():
        if key not in trained or trained[key].shape != value.shape:
            there = list(trained[key].shape) if key in trained else "not there"
            raise InputError(
                f"train.init_from={name!r} does not fit: its {key} is {there}; expected {list(value.shape)}. The "
                "models must agree in tasks.classes, tasks.image_size, tasks.channels and in the options of the model"
            )
    model.load_state_dict({key: trained[key] for key in own})
