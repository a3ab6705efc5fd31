"""Trained models on disk: in the folder of a run, or exported to a small folder of their own.

An exported model is a folder with `weights.safetensors`, `model.json` (format number, configuration, image shape, what
was measured) and `README.md`, its card.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from srwm.errors import InputError
from srwm.runs._json import read_object
from srwm.runs._nearest import did_you_mean
from srwm.runs.atomic import write_atomically
from srwm.runs.checkpoint import best_checkpoint, latest_checkpoint
from srwm.runs.config import from_json, to_json
from srwm.runs.run_folder import RunFolder

from .config import FewShotConfig
from .model import FewShotModel

KIND = "few-shot"
FORMAT = 1
SHIPPED = Path(__file__).parent.parent / "models"
"""Where the models lie that come with the package."""


def shipped_models() -> list[str]:
    """Name the models that come with the package."""
    return sorted(path.parent.name for path in SHIPPED.glob("*/model.json"))


def load_model(name: str | Path, *, device: torch.device | str = "cpu") -> FewShotModel:
    """Load a trained model, ready to learn and predict.

    Args:
        name: a model that comes with the package, the folder of a run (its best checkpoint), or of an exported model.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    path = Path(name)
    if (path / "model.json").is_file():
        model = _load_exported(path)
    elif (path / "config.json").is_file():
        model = _load_run(path)
    elif (SHIPPED / str(name) / "model.json").is_file():
        model = _load_exported(SHIPPED / str(name))
    elif path.exists():
        raise InputError(f"{path} is neither the folder of a run nor that of an exported model")
    else:
        known = shipped_models()
        raise InputError(
            f"there is no model {str(name)!r}{did_you_mean(str(name), known)}; with the package come "
            f"{', '.join(known) or 'none'}, and the folder of a run can be named by its path"
        )
    return model.to(device).eval()


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
    tensors = {
        name: tensor.detach().to("cpu", torch.float16 if half else tensor.dtype).contiguous()
        for name, tensor in model.state_dict().items()
    }
    about = {
        "format": FORMAT,
        "kind": KIND,
        "config": to_json(model.config),
        "image_shape": list(model.image_shape),
        "measured": dict(measured),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "weights.safetensors", safetensors.torch.save(tensors))
    write_atomically(folder / "README.md", card.encode())
    # Last, because a folder is taken for a model by this file.
    write_atomically(folder / "model.json", (json.dumps(about, indent=2) + "\n").encode())


def _load_exported(folder: Path) -> FewShotModel:
    file = folder / "model.json"
    about = read_object(file)
    if (about.get("kind"), about.get("format")) != (KIND, FORMAT):
        raise InputError(f"{file} is not a {KIND} model of format {FORMAT}")
    if not isinstance(about.get("config"), dict):
        raise InputError(f"{file} has no proper config")
    try:
        weights = safetensors.torch.load((folder / "weights.safetensors").read_bytes())
    except (OSError, SafetensorError) as error:
        raise InputError(f"the weights of the model in {folder} are broken: {error}") from error
    model = build_model(from_json(FewShotConfig, about["config"]), _image_shape(about, file))
    load_weights(model, weights, folder)
    return model


def _load_run(folder: Path) -> FewShotModel:
    run = RunFolder.open(folder, kind=KIND)
    checkpoint = best_checkpoint(run.checkpoints_path) or latest_checkpoint(run.checkpoints_path)
    if checkpoint is None:
        raise InputError(f"the run in {folder} has no checkpoint yet")
    model = build_model(from_json(FewShotConfig, run.config), _image_shape(checkpoint.meta, checkpoint.path))
    load_weights(model, checkpoint.groups["weights"], checkpoint.path)
    return model


def _image_shape(about: Mapping[str, Any], where: Path) -> tuple[int, int, int]:
    match about.get("image_shape"):
        case [int(channels), int(height), int(width)] if min(channels, height, width) > 0:
            return channels, height, width
    raise InputError(f"{where} has no proper image_shape")


def build_model(config: FewShotConfig, image_shape: tuple[int, int, int]) -> FewShotModel:
    """Make the network of a recipe for images of a shape [c, h, w]."""
    channels, height, width = image_shape
    if height != width:
        raise InputError(f"images are {height} x {width}; wanted as high as wide")
    try:
        return FewShotModel(config, in_channels=channels, image_size=height)
    except ValueError as error:
        raise InputError(f"the model cannot be built: {error}") from error


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], origin: Path | str) -> None:
    """Fill a model with weights, in place, and refuse those of another one."""
    own = model.state_dict()
    for name in sorted({*own, *weights}):
        came, wanted = (list(each[name].shape) if name in each else "absent" for each in (weights, own))
        if came != wanted:
            raise InputError(f"{origin} is of another model: {name} is {came} there and {wanted} here")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(weights[name])
