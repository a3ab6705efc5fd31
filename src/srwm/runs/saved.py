"""Trained models on disk: in the folder of a run, or exported to a small folder of their own.

An exported model is a folder with `weights.safetensors`, `model.json` (format number, kind, configuration, what was
measured, and what else the kind needs to build it) and `README.md`, its card.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from srwm.errors import InputError

from ._json import read_object
from .atomic import write_atomically
from .checkpoint import best_checkpoint, latest_checkpoint
from .run_folder import RunFolder

__all__ = ["SavedModel", "kind_of", "load_weights", "read_model", "write_model"]

FORMAT = 1
"""Number of the format of `model.json`."""


class SavedModel(NamedTuple):
    """All that a model is built of again."""

    config: dict[str, Any]
    """The configuration as JSON values, for `srwm.runs.config.from_json`."""
    about: dict[str, Any]
    """What else is said of it: the content of `model.json`, or what the checkpoint says of itself."""
    weights: dict[str, Tensor]
    """Its weights, on the CPU; see `load_weights`."""
    path: Path
    """Where they come from: the folder of the model, or of the checkpoint."""
    file: Path
    """The file that `about` stands in."""


def kind_of(path: Path) -> str | None:
    """Say of what kind the run or exported model in a folder is; None if there is neither.

    It says nothing of whether the rest of it is whole.

    Raises:
        InputError: if the file that should say so is broken.
    """
    for name in ("model.json", "config.json"):
        if (path / name).is_file():
            kind = read_object(path / name).get("kind")
            return kind if isinstance(kind, str) else None
    return None


def read_model(path: Path, kind: str) -> SavedModel:
    """Read a model from the folder of a run (its best checkpoint), or of an exported model.

    Raises:
        InputError: if there is no model of this kind, or its files are broken.
    """
    if (path / "model.json").is_file():
        return _read_exported(path, kind)
    if (path / "config.json").is_file():
        return _read_run(path, kind)
    if path.exists():
        raise InputError(f"{path} is neither the folder of a run nor that of an exported model")
    raise InputError(f"there is no model at {path}: the folder does not exist")


def write_model(
    model: nn.Module,
    folder: Path,
    *,
    kind: str,
    config: Mapping[str, Any],
    half: bool,
    measured: Mapping[str, Any],
    card: str,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to a folder of its own.

    Args:
        model: the network.
        folder: where; made if it is not there.
        kind: of the run that it comes from.
        config: the whole configuration as JSON values.
        half: whether to round the weights to 16 bits, for half the size.
        measured: what is known about its accuracy, as JSON values.
        card: text of its `README.md`.
        more: what else is needed to build the model, as JSON values.

    Raises:
        RunError: if it cannot be written.
    """
    tensors = {
        name: tensor.detach().to("cpu", _dtype(tensor, half)).contiguous()
        for name, tensor in model.state_dict().items()
    }
    about = {"format": FORMAT, "kind": kind, "config": config, **(more or {}), "measured": dict(measured)}
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "weights.safetensors", safetensors.torch.save(tensors))
    write_atomically(folder / "README.md", card.encode())
    # Last, because a folder is taken for a model by this file.
    write_atomically(folder / "model.json", (json.dumps(about, indent=2) + "\n").encode())


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


def _dtype(tensor: Tensor, half: bool) -> torch.dtype:
    return torch.float16 if half and tensor.is_floating_point() else tensor.dtype


def _read_exported(folder: Path, kind: str) -> SavedModel:
    file = folder / "model.json"
    about = read_object(file)
    if (about.get("kind"), about.get("format")) != (kind, FORMAT):
        raise InputError(f"{file} is not a {kind} model of format {FORMAT}")
    if not isinstance(about.get("config"), dict):
        raise InputError(f"{file} has no proper config")
    try:
        weights = safetensors.torch.load((folder / "weights.safetensors").read_bytes())
    except (OSError, SafetensorError) as error:
        raise InputError(f"the weights of the model in {folder} are broken: {error}") from error
    return SavedModel(about["config"], about, weights, folder, file)


def _read_run(folder: Path, kind: str) -> SavedModel:
    run = RunFolder.open(folder, kind=kind)
    checkpoint = best_checkpoint(run.checkpoints_path) or latest_checkpoint(run.checkpoints_path)
    if checkpoint is None:
        raise InputError(f"the run in {folder} has no checkpoint yet")
    weights = checkpoint.groups["weights"]
    return SavedModel(run.config, checkpoint.meta, weights, checkpoint.path, checkpoint.path / "meta.json")
