"""Trained few-shot models on disk: those that come with the package, of runs, and exported ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from srwm.errors import InputError
from srwm.runs import shipped
from srwm.runs.config import to_json
from srwm.runs.loading import load_trained
from srwm.runs.model_files import write_model

from .config import FewShotConfig
from .model import FewShotModel

KIND = "few-shot"


def shipped_models() -> list[str]:
    """Name the few-shot models that come with the package."""
    return shipped.shipped_models(KIND)


def load_model(name: str | Path, *, device: torch.device | str = "cpu") -> FewShotModel:
    """Load a trained model, ready to learn and predict.

    Args:
        name: a model that comes with the package, the folder of a run (its best checkpoint), or of an exported model.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    return load_trained(name, KIND, FewShotConfig, build_saved_model, device)[0]


def export_model(model: FewShotModel, folder: Path, *, half: bool, measured: Mapping[str, Any], card: str) -> None:
    """Write a model to a folder of its own.

    Args:
        model: what `load_model` gave.
        folder: where; made if it is not there.
        half: whether to round the weights to 16 bits, for half the size.
        measured: what is known about its accuracy, as JSON values.
        card: text of its `README.md`.

    Raises:
        RunError: if it cannot be written.
    """
    write_model(
        model,
        folder,
        kind=KIND,
        config=to_json(model.config),
        half=half,
        measured=measured,
        card=card,
        more={"image_shape": list(model.image_shape)},
    )


def build_model(config: FewShotConfig, image_shape: tuple[int, int, int]) -> FewShotModel:
    """Make the network of a recipe for images of a shape [c, h, w]."""
    channels, height, width = image_shape
    if height != width:
        raise InputError(f"images are {height} x {width}; expected as high as wide")
    try:
        return FewShotModel(config, in_channels=channels, image_size=height)
    except ValueError as error:
        raise InputError(f"the model cannot be built: {error}") from error


def build_saved_model(config: FewShotConfig, about: Mapping[str, Any]) -> FewShotModel:
    """Make the network of a recipe for images of the shape that is said of it."""
    match about.get("image_shape"):
        case [int(channels), int(height), int(width)] if min(channels, height, width) > 0:
            return build_model(config, (channels, height, width))
    raise InputError(f"the model has no proper image_shape: expected [c, h, w], got {about.get('image_shape')}")
