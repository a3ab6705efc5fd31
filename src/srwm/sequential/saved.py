"""Trained models of streams on disk: in the folder of a run, or exported to a small folder of their own.

An exported model is a folder with `weights.safetensors`, `model.json` (format number, configuration, what was measured)
and `README.md`, its card.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError

from srwm.errors import InputError
from srwm.fewshot.saved import load_weights
from srwm.runs._json import read_object
from srwm.runs.atomic import write_atomically
from srwm.runs.checkpoint import best_checkpoint, latest_checkpoint
from srwm.runs.config import from_json, to_json
from srwm.runs.run_folder import RunFolder

from .config import SequentialConfig
from .model import StreamModel

KIND = "sequential"
FORMAT = 1


def is_stream_model(path: Path) -> bool:
    """Whether a folder holds a run on streams or an exported model of one; says nothing of whether it is whole."""
    for name in ("model.json", "config.json"):
        if (path / name).is_file():
            return read_object(path / name).get("kind") == KIND
    return False


def load_stream_model(path: str | Path, device: torch.device | str = "cpu") -> StreamModel:
    """Load a trained model, ready for streams.

    Args:
        path: the folder of a run (its best checkpoint), or of an exported model.
        device: where to put it.

    Raises:
        InputError: if there is no such model, or its files are broken.
    """
    folder = Path(path)
    if (folder / "model.json").is_file():
        model = _load_exported(folder)
    elif (folder / "config.json").is_file():
        model = _load_run(folder)
    elif folder.exists():
        raise InputError(f"{folder} is neither the folder of a run nor that of an exported model")
    else:
        raise InputError(f"there is no model at {folder}: the folder does not exist")
    return model.to(device).eval()


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
    tensors = {
        name: tensor.detach().to("cpu", torch.float16 if half else tensor.dtype).contiguous()
        for name, tensor in model.state_dict().items()
    }
    about = {"format": FORMAT, "kind": KIND, "config": to_json(model.config), "measured": dict(measured)}
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "weights.safetensors", safetensors.torch.save(tensors))
    write_atomically(folder / "README.md", card.encode())
    # Last, because a folder is taken for a model by this file.
    write_atomically(folder / "model.json", (json.dumps(about, indent=2) + "\n").encode())


def build_model(config: SequentialConfig) -> StreamModel:
    """Make the network of a recipe.

    Raises:
        InputError: if an option does not fit.
    """
    try:
        return StreamModel(config)
    except ValueError as error:
        raise InputError(f"the model cannot be built: {error}") from error


def _load_exported(folder: Path) -> StreamModel:
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
    model = build_model(from_json(SequentialConfig, about["config"]))
    load_weights(model, weights, folder)
    return model


def _load_run(folder: Path) -> StreamModel:
    run = RunFolder.open(folder, kind=KIND)
    checkpoint = best_checkpoint(run.checkpoints_path) or latest_checkpoint(run.checkpoints_path)
    if checkpoint is None:
        raise InputError(f"the run in {folder} has no checkpoint yet")
    model = build_model(from_json(SequentialConfig, run.config))
    load_weights(model, checkpoint.groups["weights"], checkpoint.path)
    return model
