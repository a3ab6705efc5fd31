"""Records on disk: tensors in safetensors, the rest in JSON."""

import dataclasses
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from srwm.errors import InputError
from srwm.nn import MatrixKind
from srwm.runs.atomic import failures_as_sentences, write_atomically
from srwm.runs.json_objects import json_bytes, read_object
from srwm.runs.reading import open_file
from srwm.runs.results import read_part

from .record import Inspection, MatrixRecord

FORMAT = 2
"""Records of format 1 know of no forget gates, and are read, too."""
TENSORS, REST = "record.safetensors", "record.json"

_WORDS = ("name", "kind", "parts", "columns", "rows", "heads")
_TENSORS = [field.name for field in dataclasses.fields(MatrixRecord) if field.name not in _WORDS]


def save(inspection: Inspection, folder: Path) -> None:
    """Write a record; see `Inspection.save`."""
    tensors = {
        f"{place}.{name}": tensor.contiguous()
        for place, matrix in enumerate(inspection)
        for name in _TENSORS
        if (tensor := getattr(matrix, name)) is not None
    }
    about = {
        "format": FORMAT,
        "every": inspection.every,
        "matrices": [{name: _plain(getattr(matrix, name)) for name in _WORDS} for matrix in inspection],
    }
    with failures_as_sentences(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / TENSORS, safetensors.torch.save(tensors))
    # Last, because a folder is taken for a record by this file.
    write_atomically(folder / REST, json_bytes(about))


def load(folder: Path) -> Inspection:
    """Read a record; see `Inspection.load`."""
    if not (folder / REST).is_file():
        raise InputError(f"{folder} holds no record: there is no {REST} in it")
    about = read_object(folder / REST)
    if about.get("format") not in (1, FORMAT):
        raise InputError(f"{folder / REST} is of format {about.get('format')}; this version reads 1 to {FORMAT}")
    with open_file(folder / TENSORS) as file:
        data = file.read()
    try:
        tensors = safetensors.torch.load(data)
    except SafetensorError as error:
        raise InputError(f"the tensors of the record in {folder} are broken: {error}") from error
    try:
        said = read_part(_About, {name: value for name, value in about.items() if name != "format"}, "")
        matrices = tuple(
            _matrix(words, place, _without_gates(place, tensors) if about["format"] == 1 else tensors)
            for place, words in enumerate(said.matrices)
        )
        return Inspection(matrices, said.every)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder / REST} does not fit its tensors: {type(error).__name__} {error}") from error


@dataclasses.dataclass(frozen=True)
class _Words:
    """What a record says in words; see `MatrixRecord`."""

    name: str
    kind: MatrixKind
    parts: tuple[str, ...]
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    heads: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class _About:
    """What stands in `record.json` beside its format."""

    every: int
    matrices: tuple[_Words, ...]


_SHAPES = {
    "weight": "h d m",
    "step": "t",
    "episode": "b t",
    "read": "b t h d",
    "y": "b t h e",
    "query": "b t h q",
    "key": "b t h q",
    "beta": "b t h r",
    "forget": "b t h g",
    "log_kept": "b t h g",
    "write": "b t h m",
    "change": "b t h d m",
    "start": "n h d m",
    "start_row": "n",
    "start_episode": "n",
    "deviation": "",
}
"""The letters of each tensor's axes, as in `MatrixRecord`."""


def _matrix(words: _Words, place: int, tensors: dict[str, Tensor]) -> MatrixRecord:
    found: dict[str, Any] = {name: tensors[f"{place}.{name}"] for name in _TENSORS if name != "change"}
    if f"{place}.change" in tensors:
        found["change"] = tensors[f"{place}.change"]
    sizes = {"b": len(words.rows), "h": len(words.heads), "m": sum(words.columns)}
    for name, tensor in found.items():
        letters = _SHAPES[name].split()
        wanted = [sizes.setdefault(letter, size) for letter, size in zip(letters, tensor.shape, strict=True)]
        if list(tensor.shape) != wanted:
            raise ValueError(f"{place}.{name} has shape {list(tensor.shape)}; expected {wanted}")
    return MatrixRecord(**{**{name: getattr(words, name) for name in _WORDS}, "change": None, **found})


def _without_gates(place: int, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a record of format 1, with those of gates that are not there."""
    none = tensors[f"{place}.beta"][..., :0]
    return {**tensors, f"{place}.forget": none, f"{place}.log_kept": none.double()}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
