"""Checkpoints: exact, written whole or not at all, and checked byte for byte when they are read.

A checkpoint is a folder `step-000001200/` with one `<group>.safetensors` for each group of tensors and a `meta.json`
that holds the format number, the step, what the caller adds, and the SHA-256 of every file, its own included. It is
written under another name, reaches the disk, and only then takes its name; so what has the name is whole, unless a disk
went bad, which reading finds out. Tensors are stored as safetensors and the rest as JSON: nothing in a checkpoint can
run code when it is read.
"""

import hashlib
import itertools
import logging
import math
import os
import platform
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor

import srwm
from srwm.errors import InputError

from .atomic import failures_as_sentences, sync_folder, write_synced
from .json_objects import MOST_BYTES, json_bytes, read_object
from .reading import open_file, read_file
from .tensor_file import read_tensors

__all__ = [
    "Checkpoint",
    "best_checkpoint",
    "checkpoint_folders",
    "latest_checkpoint",
    "load_checkpoint",
    "prune",
    "save_checkpoint",
]

FORMAT = 1
"""Number of the newest format; every number up to it can be read."""

_META = "meta.json"
_NAME = re.compile(r"step-(\d{9,})")
_GROUP = "[A-Za-z0-9_-]+"
_FILE = re.compile(rf"{_GROUP}\.safetensors")
_TEMPORARY = ".tmp"
_OLD = f".old{_TEMPORARY}"

_log = logging.getLogger(__name__)


class Checkpoint(NamedTuple):
    """A checkpoint that was read and found whole."""

    path: Path
    """Its folder."""
    step: int
    """Training steps done when it was written."""
    groups: dict[str, dict[str, Tensor]]
    """The tensors, on the CPU, by group and name."""
    meta: dict[str, Any]
    """What was given to `save_checkpoint`."""


def save_checkpoint(
    folder: Path, step: int, groups: Mapping[str, Mapping[str, Tensor]], meta: Mapping[str, Any]
) -> Path:
    """Write a checkpoint; one of the same step is replaced.

    Args:
        folder: where the checkpoints of the run lie; made if it is not there.
        step: training steps done so far.
        groups: tensors by group and name, on any device, of any layout; they may share memory.
        meta: JSON values; a finite `"score"` lets `best_checkpoint` find it.

    Returns:
        The folder of the checkpoint.

    Raises:
        RunError: if it cannot be written; earlier checkpoints are then as they were, and nothing half is left.
        ValueError: if a group has no plain name, or `meta` is not JSON.
    """
    target = folder / _name(step)
    temporary, old = folder / (target.name + _TEMPORARY), folder / (target.name + _OLD)
    files = {f"{_checked_group(name)}.safetensors": _serialise(tensors) for name, tensors in groups.items()}
    files[_META] = _meta_bytes(step, meta, files)
    with failures_as_sentences(target):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _remove(temporary)
            temporary.mkdir()
            for name, data in files.items():
                write_synced(temporary / name, data)
            sync_folder(temporary)
            if target.exists():
                # Only a new folder can take the name. Until it has, the old one can be read under its other name.
                _remove(old)
                os.rename(target, old)
            os.rename(temporary, target)
        except BaseException:
            if old.exists() and not target.exists():
                os.rename(old, target)
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(folder)
        _remove(old)
    return target


def load_checkpoint(path: Path, groups: Sequence[str] | None = None) -> Checkpoint:
    """Read a checkpoint and check every byte of what is read.

    Args:
        path: its folder.
        groups: the groups that are wanted; None for all.

    Raises:
        InputError: if it is no checkpoint, comes from a newer version, lacks a group, or a file of it is broken; the
            sentence names the file.
    """
    meta = _read_meta(path)
    stored = [name.removesuffix(".safetensors") for name in meta["files"]]
    missing = sorted(set(groups or ()) - set(stored))
    if missing:
        raise InputError(f"the checkpoint {path} has no {missing[0]!r}; it has {', '.join(stored)}")
    read = {}
    for group in stored if groups is None else groups:
        name = f"{group}.safetensors"
        read[group] = read_tensors(_read_checked(path / name, meta["files"][name]), path / name)
    return Checkpoint(path, meta["step"], read, meta["meta"])


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """Read the newest checkpoint that is whole.

    A broken one is passed over with a warning in the log, so that a run goes on from the one before.

    Returns:
        The checkpoint, or None if the folder holds none that is whole.
    """
    return _first_whole(path for _, path in reversed(_candidates(folder)))


def best_checkpoint(folder: Path) -> Checkpoint | None:
    """Read the whole checkpoint with the highest `"score"`; of equal ones, the earliest.

    Returns:
        The checkpoint, or None if the folder holds none that is whole and has a score.
    """
    return _first_whole(_by_score(folder))


def prune(folder: Path, keep: int) -> None:
    """Remove all checkpoints but the newest `keep` and the best, and what broken saves and removals left behind.

    Only whole ones count, read to their last byte: broken ones that are newer stay where they are and are no reason to
    remove any. Whoever opens a folder to write to it calls this, too: the process before may have been killed anywhere.

    Raises:
        RunError: if something cannot be removed.
    """
    if keep < 1:
        raise ValueError(f"keep={keep}; expected at least 1")
    with failures_as_sentences(folder):
        for path in sorted(folder.glob(f"step-*{_OLD}")):
            named = path.with_name(path.name.removesuffix(_OLD))
            if not named.exists() and _is_whole(path):
                os.rename(path, named)
        folders = checkpoint_folders(folder)
        whole = list(itertools.islice(filter(_is_whole, reversed(folders)), keep))
        scored = _by_score(folder)
        # A best one that is broken stays as well: every reading then tells of it.
        kept = {*whole, *scored[:1], *itertools.islice(filter(_is_whole, scored), 1)}
        for path in folders[: folders.index(whole[0])] if whole else []:
            if path not in kept:
                _remove(path)
        for path in sorted(folder.glob(f"step-*{_TEMPORARY}")):
            shutil.rmtree(path)


def checkpoint_folders(folder: Path) -> list[Path]:
    """List the checkpoints in a folder, whole or not, the oldest first."""
    return [path for step, path in _candidates(folder) if path.name == _name(step)]


def _name(step: int) -> str:
    return f"step-{step:09d}"


def _checked_group(name: str) -> str:
    if not re.fullmatch(_GROUP, name):
        raise ValueError(f"group {name!r}; expected letters, digits, '_' and '-', for it names a file")
    return name


def _serialise(tensors: Mapping[str, Tensor]) -> bytes:
    copies: dict[str, Tensor] = {}
    storages = set()
    for name, tensor in tensors.items():
        copy = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        # The format stores each tensor by itself: those that share memory become two.
        if copy.untyped_storage().data_ptr() in storages:
            copy = copy.clone()
        storages.add(copy.untyped_storage().data_ptr())
        copies[name] = copy
    return safetensors.torch.save(copies)


def _meta_bytes(step: int, meta: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    value = {
        "format": FORMAT,
        "step": step,
        "versions": {"srwm": srwm.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "meta": dict(meta),
        "files": {name: {"size": len(data), "sha256": _digest(data)} for name, data in files.items()},
    }
    return json_bytes({**value, "sha256": _digest(json_bytes(value))})


def _read_meta(path: Path) -> dict[str, Any]:
    """Read `meta.json` and check it against its own digest and the name of the folder."""
    file = path / _META
    if not path.is_dir():
        raise InputError(f"{path} is not a checkpoint; expected a folder named like step-000001200")
    value = read_object(file)
    number = value.get("format")
    if type(number) is not int or number < 1:
        raise InputError(f"{file} is broken: it says no format number")
    if number > FORMAT:
        raise InputError(f"{file} has format {number}, this version of srwm reads up to {FORMAT}; install a newer one")
    digest = value.pop("sha256", None)
    # Compared as bytes, so that not one of them can have changed.
    if digest != _digest(json_bytes(value)) or read_file(file, MOST_BYTES) != json_bytes({**value, "sha256": digest}):
        raise InputError(f"{file} is broken: its content does not match its SHA-256")
    if not _has_known_shape(value):
        raise InputError(f"{file} is not what srwm writes beside a checkpoint")
    match = _NAME.fullmatch(path.name.removesuffix(_OLD))
    if match and int(match[1]) != value["step"]:
        raise InputError(f"{path} holds step {value['step']}; the folder was renamed")
    return value


def _has_known_shape(value: Mapping[str, Any]) -> bool:
    """Whether `meta.json` holds what it should: its digest can be made by anyone."""
    match value:
        case {"step": int(), "meta": dict(), "files": dict(files)}:
            return all(_FILE.fullmatch(name) and _is_entry(entry) for name, entry in files.items())
    return False


def _is_entry(entry: Any) -> bool:
    match entry:
        case {"size": int(), "sha256": str()}:
            return True
    return False


def _read_checked(file: Path, expected: Mapping[str, Any]) -> bytes:
    with open_file(file) as opened:
        # Compared before it is read: a file may be larger than the memory.
        size = os.fstat(opened.fileno()).st_size
        if size != expected["size"]:
            raise InputError(f"{file} is broken: it has {size:,} bytes; expected {expected['size']:,}")
        data = opened.read(size)
    if _digest(data) != expected["sha256"]:
        raise InputError(f"{file} is broken: its content does not match its SHA-256")
    return data


def _is_whole(path: Path) -> bool:
    """Whether a checkpoint can be read to its last byte."""
    try:
        files = _read_meta(path)["files"]
        for name, expected in files.items():
            _read_checked(path / name, expected)
    except InputError:
        return False
    return True


def _first_whole(paths: Iterable[Path]) -> Checkpoint | None:
    for path in paths:
        try:
            return load_checkpoint(path)
        except InputError as error:
            _log.warning("passing over a broken checkpoint: %s", error)
    return None


def _candidates(folder: Path) -> list[tuple[int, Path]]:
    """List the steps and folders of what may be a checkpoint, the oldest first.

    Beside those that have their name, it is those that had to give it up for a new one of the same step, where a kill
    came before that one had taken it.
    """
    if not folder.is_dir():
        return []
    found: dict[int, Path] = {}
    # Of a step, the folder with the plain name comes first in this order.
    for path in sorted(folder.iterdir()):
        match = _NAME.fullmatch(path.name.removesuffix(_OLD))
        if match and path.is_dir():
            found.setdefault(int(match[1]), path)
    return sorted(found.items())


def _by_score(folder: Path) -> list[Path]:
    """List the checkpoints that have a score, the best first, of equal ones the earliest first."""
    scored = []
    for _, path in _candidates(folder):
        try:
            meta = _read_meta(path)
        except InputError:  # Broken, so it has no score that could be trusted; `latest_checkpoint` tells of it.
            continue
        score = meta["meta"].get("score")
        if type(score) in (int, float) and math.isfinite(score):
            scored.append((-score, meta["step"], path))
    return [path for _, _, path in sorted(scored)]


def _remove(path: Path) -> None:
    """Remove a checkpoint; broken off half-way, it is none any more."""
    if not path.exists():
        return
    if not path.name.endswith(_TEMPORARY):
        old = path.with_name(path.name + _OLD)
        _remove(old)
        path = path.rename(old)
    shutil.rmtree(path)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
