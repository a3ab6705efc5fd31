"""Trained few-shot models on disk: those that come with the package, of runs, and exported ones."""

from collections.abc import Mapping
from typing import Any

from srwm.errors import InputError
from srwm.runs import shipped
from srwm.runs.loading import TrainedModels

from .config import FewShotConfig
from .model import FewShotModel

KIND = "few-shot"


def shipped_models() -> list[str]:
    """Name the few-shot models that come with the package."""
    return shipped.shipped_models(KIND)


def build_model(config: FewShotConfig, image_shape: tuple[int, int, int]) -> FewShotModel:
    """Make the network of a recipe for images of a shape [c, h, w]."""
    return build_saved_model(config, {"image_shape": list(image_shape)})


def about_model(model: FewShotModel) -> dict[str, Any]:
    """What a saved model says of itself beside its recipe."""
    return {"image_shape": list(model.image_shape)}


def _make(config: FewShotConfig, about: Mapping[str, Any]) -> FewShotModel:
    match about.get("image_shape"):
        case [int(channels), int(height), int(width)] if min(channels, height, width) > 0:
            if height != width:
                raise InputError(f"images are {height} x {width}; expected as high as wide")
            return FewShotModel(config, in_channels=channels, image_size=height)
    raise InputError(f"the model has no proper image_shape: expected [c, h, w], got {about.get('image_shape')}")


_MODELS = TrainedModels(KIND, FewShotConfig, _make, about_model)

load_model = _MODELS.load
"""Load a trained model, ready to learn and predict; see `TrainedModels.load`."""

export_model = _MODELS.export
"""Write a model to a folder of its own; see `TrainedModels.export`."""

build_saved_model = _MODELS.build
"""Make the network of a recipe for images of the shape that is said of it."""
