"""Trained models on disk: in the folder of a run, or exported to a small folder of their own.

An exported model is a folder with `weights.safetensors`, `model.json` (format number, kind, configuration, what was
measured, and what else the kind needs to build it) and `README.md`, its card.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from srwm.errors import InputError

from .atomic import unreadable_as_sentence, write_atomically
from .checkpoint import best_checkpoint, checkpoint_folders, latest_checkpoint
from .json_objects import MOST_BYTES, read_object
from .reading import read_file
from .run_folder import RunFolder
from .tensor_file import check_fits, copy_tensors, read_tensors

__all__ = [
    "CARD_FILE",
    "MODEL_FILES",
    "SavedModel",
    "build_saved",
    "kind_of",
    "load_weights",
    "read_model",
    "write_model",
]

FORMAT = 1
"""Number of the format of `model.json`."""

MOST_WEIGHT_BYTES = 1 << 34
"""Bytes of the largest file of weights that is read."""

_WEIGHTS = "weights.safetensors"
MODEL_FILES = {"model.json": MOST_BYTES, _WEIGHTS: MOST_WEIGHT_BYTES}
"""The files that a model is, and how many bytes each may have."""
CARD_FILE = {"README.md": 1 << 20}
"""The same of its card."""
_MORE_TENSORS = 64
"""So many tensors may a model ask for beyond those of its file, before it is given up: which one is missing is then
said by its name."""

M = TypeVar("M", bound=nn.Module)


class SavedModel(NamedTuple):
    """All that a model is built of again."""

    config: dict[str, Any]
    """The configuration as JSON values, for `srwm.runs.config.from_json`."""
    about: dict[str, Any]
    """What else is said of it: the content of `model.json`, or what the checkpoint says of itself."""
    weights: dict[str, Tensor]
    """Its weights, on the CPU; see `build_saved`."""
    path: Path
    """Where they come from: the folder of the model, or of the checkpoint."""
    file: Path
    """The file that `about` stands in."""

    @property
    def weights_file(self) -> Path:
        """The file that the weights stand in."""
        return self.path / _WEIGHTS


def kind_of(path: Path) -> str | None:
    """Say of what kind the run or exported model in a folder is; None if there is neither.

    It says nothing of whether the rest of it is whole.

    Raises:
        InputError: if the file that should say so is broken.
    """
    for name in ("model.json", "config.json"):
        with unreadable_as_sentence(path):
            is_there = (path / name).is_file()
        if is_there:
            kind = read_object(path / name).get("kind")
            return kind if isinstance(kind, str) else None
    return None


def read_model(path: Path, kind: str) -> SavedModel:
    """Read a model from the folder of a run (its best checkpoint), or of an exported model.

    Raises:
        InputError: if there is no model of this kind, or its files are broken.
    """
    with unreadable_as_sentence(path):
        holds_model, holds_run, is_there = ((path / name).exists() for name in ("model.json", "config.json", ""))
    if holds_model:
        return _read_exported(path, kind)
    if holds_run:
        return _read_run(path, kind)
    if is_there:
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
    write_atomically(folder / _WEIGHTS, safetensors.torch.save(tensors))
    write_atomically(folder / "README.md", card.encode())
    # Last, because a folder is taken for a model by this file.
    write_atomically(folder / "model.json", (json.dumps(about, indent=2) + "\n").encode())


def build_saved(saved: SavedModel, make: Callable[[], M]) -> M:
    """Make the network of a saved model and fill it with its weights.

    What the configuration asks for is compared with the weights before any of it takes up memory: anyone can write a
    configuration of a hundred million layers.

    Raises:
        InputError: if the network cannot be made, or the weights are of another one, not finite or no floats.
    """
    try:
        with torch.device("meta"), _tensors_at_most(len(saved.weights), saved):
            blank = make()
    except InputError:
        raise
    except (RuntimeError, TypeError, OverflowError) as error:
        # Of torch, about sizes that it cannot count, and about options of a memory, which may be anything.
        reason = str(error).partition("\n")[0]
        raise InputError(f"{saved.file} describes a model that cannot be built: {reason}") from error
    check_fits(blank.state_dict(), saved.weights, saved.weights_file, finite=True)
    model = make()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(saved.weights[name])
    return model


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], origin: Path | str) -> None:
    """Fill a model with weights, in place, and refuse those of another one and those that are no finite numbers."""
    copy_tensors(model.state_dict(), weights, origin, finite=True)


@contextlib.contextmanager
def _tensors_at_most(count: int, saved: SavedModel) -> Iterator[None]:
    """Stop the making of a network that has many more parameters than there are weights for."""
    thread, made = threading.get_ident(), 0

    def count_one(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal made
        # The hook is torch's for all threads; others may make networks of their own.
        if parameter is None or threading.get_ident() != thread:
            return
        made += 1
        if made > count + _MORE_TENSORS:
            raise InputError(
                f"{saved.weights_file} is of another model: it holds {count} tensors, and {saved.file} asks for more "
                f"than {made - 1}"
            )

    handle = register_module_parameter_registration_hook(count_one)
    try:
        yield
    finally:
        handle.remove()


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
        weights = read_tensors(read_file(folder / _WEIGHTS, MOST_WEIGHT_BYTES), folder / _WEIGHTS)
    except InputError as error:
        raise InputError(f"the weights of the model in {folder} are broken: {error}") from error
    return SavedModel(about["config"], about, weights, folder, file)


def _read_run(folder: Path, kind: str) -> SavedModel:
    run = RunFolder.open(folder, kind=kind)
    checkpoint = best_checkpoint(run.checkpoints_path) or latest_checkpoint(run.checkpoints_path)
    if checkpoint is None and checkpoint_folders(run.checkpoints_path):
        raise InputError(f"the run in {folder} has no checkpoint that is whole; train again, or take another run")
    if checkpoint is None:
        raise InputError(f"the run in {folder} has no checkpoint yet")
    if "weights" not in checkpoint.groups:
        raise InputError(f"{checkpoint.path} holds no model: it has {', '.join(checkpoint.groups) or 'no tensors'}")
    weights = checkpoint.groups["weights"]
    return SavedModel(run.config, checkpoint.meta, weights, checkpoint.path, checkpoint.path / "meta.json")
