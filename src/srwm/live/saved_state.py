"""Live streams on disk: checkpoints of the model's state and of all that the stream knows beside it.

The weights themselves are not saved, for they do not change; their digest is, so that a state never meets another
model.
"""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from srwm.errors import InputError
from srwm.nn import SequenceState, map_state, named_tensors
from srwm.runs.checkpoint import Checkpoint, checkpoint_folders, latest_checkpoint, prune, save_checkpoint
from srwm.runs.config import from_json, to_json

from .model import LiveModel

_KIND = "live-stream"
_FORMAT = 1
_GROUP = "state"
_KEPT = 2
"""Saves that are kept: the newest, and the one before it."""

MOST_TASKS = 1000
"""Tasks about which a stream may be asked between two reports."""

_MOST_ANSWERED = 1 << 53
"""No stream comes to so many lines."""


@dataclass(frozen=True)
class Known:
    """How questions about a task were answered since the last report."""

    task: str
    """What the task is called."""
    right: int
    """Correct answers."""
    asked: int
    """Questions whose answer is known."""

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.asked:
            raise ValueError(f"{self.right} right of {self.asked} questions about {self.task!r} cannot be")


@dataclass
class StreamProgress:
    """All that a stream knows beside the state of its model."""

    step: int = 0
    """Images answered."""
    began: int = 0
    """How many of them before the state was last reset."""
    previous_label: int | None = None
    """Slot of the last image's label; None until it is told."""
    predicted: int | None = None
    """Slot that was answered to the last image, while its label is awaited; else None."""
    names: tuple[str, ...] = ()
    """Names of the first slots."""
    numbered: bool = False
    """Whether labels are numbers."""
    right: int = 0
    """Correct answers since the last report."""
    labelled: int = 0
    """Labels since the last report."""
    known: tuple[Known, ...] = ()
    """What was asked since the last report, in the order in which the tasks first came."""

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.labelled <= self.step:
            raise ValueError(f"{self.right} right of {self.labelled} labels at step {self.step} cannot be")
        if not 0 <= self.began <= self.step:
            raise ValueError(f"began is {self.began} at step {self.step}; expected 0 to {self.step}")
        if len({each.task for each in self.known}) != len(self.known) or len(self.known) > MOST_TASKS:
            raise ValueError(f"known has {len(self.known)} tasks; expected at most {MOST_TASKS}, each of them once")


@dataclass(frozen=True)
class Position:
    """Where an input is."""

    input: str
    """What kind of input, and which."""
    answered: int | str
    """How many of its lines were answered, or the name of its last file that was."""

    def __post_init__(self) -> None:
        if isinstance(self.answered, int) and not 0 <= self.answered <= _MOST_ANSWERED:
            raise ValueError(f"answered is {self.answered}; expected 0 to {_MOST_ANSWERED:,}")


@dataclass(frozen=True)
class _Record:
    model: str
    """Digest of the model's weights."""
    is_new: bool
    """Whether the model has seen nothing yet, so that there is no state."""
    progress: StreamProgress
    position: Position | None


class SavedStream(NamedTuple):
    """A stream that was read and found whole."""

    state: SequenceState | None
    progress: StreamProgress
    position: Position | None


def save_stream(
    folder: Path, digest: str, state: SequenceState | None, progress: StreamProgress, position: Position | None
) -> None:
    """Write a checkpoint of a stream, and remove old ones.

    Each takes a number that no other has, also where the step is that of the last one (a label came meanwhile, or a
    reset): so nothing needs to be removed before the new state is in its place.

    Raises:
        RunError: if it cannot be written.
    """
    record = _Record(digest, state is None, progress, position)
    tensors = dict(named_tensors(state or ()))
    newest = [int(path.name.rpartition("-")[2]) for path in checkpoint_folders(folder)[-1:]]
    number = max([progress.step, *(each + 1 for each in newest)])
    save_checkpoint(folder, number, {_GROUP: tensors}, {"kind": _KIND, "format": _FORMAT, "stream": to_json(record)})
    prune(folder, _KEPT)


def clear_leftovers(folder: Path) -> None:
    """Remove what a save left behind that was killed; whoever calls this sees to it that no other process saves.

    Raises:
        RunError: if something cannot be removed.
    """
    # All that has its name is kept: which of it is whole only reading it tells.
    prune(folder, max(1, len(checkpoint_folders(folder))))


def restore_stream(folder: Path, model: LiveModel, digest: str) -> SavedStream | None:
    """Read the newest checkpoint that is whole; the log tells of those that are not.

    Returns:
        What was saved, the state on the model's device; None if nothing was.

    Raises:
        InputError: if all are broken, or what is there is no stream, or belongs to another model.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected one for the state of a stream")
    checkpoint = latest_checkpoint(folder)
    if checkpoint is None:
        if checkpoint_folders(folder):
            raise InputError(f"every state saved in {folder} is broken; name another folder to begin anew")
        return None
    meta = checkpoint.meta
    if meta.get("kind") != _KIND or meta.get("format") != _FORMAT:
        raise InputError(f"{checkpoint.path} is not the state of a live stream that this version of srwm reads")
    record = from_json(_Record, meta.get("stream", {}))
    if record.model != digest:
        raise InputError(
            f"{folder} holds the state of another model, whose weights differ; name another folder, or that model"
        )
    _check_progress(record.progress, checkpoint, model.ways)
    state = None if record.is_new else _fill(_any_state(model), checkpoint.groups.get(_GROUP, {}), checkpoint.path)
    return SavedStream(state, record.progress, record.position)


def weights_digest(model: LiveModel) -> str:
    """SHA-256 of the names, types, shapes and bytes of a model's weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def state_norm(state: Any) -> float:
    """Euclidean norm of all floats of a state; not finite if one of them is not."""
    tensors = [tensor for _, tensor in named_tensors(state or ()) if tensor.is_floating_point()]
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


def _any_state(model: LiveModel) -> SequenceState:
    """Some state of a model, for its structure."""
    blank = torch.zeros(model.image_shape, dtype=torch.uint8)
    return model.observe(blank, None, None, source=next(iter(model.source_names), None))[1]


def _check_progress(progress: StreamProgress, checkpoint: Checkpoint, ways: int) -> None:
    """Refuse what no stream of such a model has saved: its digest can be made by anyone."""
    slots = (progress.previous_label, progress.predicted)
    if (
        progress.step > checkpoint.step
        or any(slot is not None and not 0 <= slot < ways for slot in slots)
        or len(set(progress.names)) != len(progress.names)
        or len(progress.names) > ways
        or (progress.numbered and progress.names)
    ):
        raise InputError(f"{checkpoint.path} is not the state of a stream of this model: labels or steps do not fit")


def _fill(pattern: SequenceState, tensors: dict[str, Tensor], path: Path) -> SequenceState:
    """Make a state of the structure of `pattern` from named tensors."""
    wanted = dict(named_tensors(pattern))
    if {name: (t.dtype, t.shape) for name, t in wanted.items()} != {
        name: (t.dtype, t.shape) for name, t in tensors.items()
    }:
        raise InputError(f"the state in {path} does not fit the model's layers")
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values() if tensor.is_floating_point()):
        raise InputError(f"the state in {path} is not finite; name another folder to begin anew")
    names = iter(wanted)
    return map_state(lambda tensor: tensors[next(names)].to(tensor.device), pattern)
