"""Records on disk: tensors in safetensors, the rest in JSON."""

import dataclasses
from pathlib import Path
from typing import Any, get_args

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from srwm.errors import InputError
from srwm.runs._json import json_bytes, read_object
from srwm.runs.atomic import failures_as_sentences, write_atomically

from ._sites import Kind
from .record import Inspection, MatrixRecord

FORMAT = 1
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
    if about.get("format") != FORMAT:
        raise InputError(f"{folder / REST} is of format {about.get('format')}; this version reads {FORMAT}")
    try:
        tensors = safetensors.torch.load((folder / TENSORS).read_bytes())
    except (OSError, SafetensorError) as error:
        raise InputError(f"the tensors of the record in {folder} are broken: {error}") from error
    try:
        matrices = tuple(_matrix(words, place, tensors) for place, words in enumerate(about["matrices"]))
        return Inspection(matrices, int(about["every"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder / REST} does not fit its tensors: {type(error).__name__} {error}") from error


def _matrix(words: dict[str, Any], place: int, tensors: dict[str, Tensor]) -> MatrixRecord:
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in words.items()}
    if plain["kind"] not in get_args(Kind):
        raise ValueError(f"kind={plain['kind']!r}")
    found: dict[str, Any] = {name: tensors[f"{place}.{name}"] for name in _TENSORS if name != "change"}
    return MatrixRecord(**{**plain, **found, "change": tensors.get(f"{place}.change")})


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
