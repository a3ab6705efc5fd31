"""The results of runs, as they stand in `result.json`: read with the type of every field that commands rely on."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from srwm.errors import InputError

from ._values import read_value
from .json_objects import read_object

__all__ = ["FIELDS", "read_own", "read_part", "read_result", "require"]

T = TypeVar("T")

FIELDS: dict[str, Any] = {
    "format": int,
    "kind": str,
    "recipe": str,
    "seed": int,
    "step": int,
    "score": float | None,
    "score_step": int | None,
    "parameters": int,
    "seconds": float,
    "date": str,
    "frames": int,
    "test": dict[str, Any] | None,
    "test_score": float | None,
    "hardware": dict[str, Any],
}
"""The fields of every experiment, and of some. A file of an earlier version may lack some and have others."""


def read_result(path: Path) -> dict[str, Any]:
    """Read a result; what stands under "test" is the experiment's own, see `read_part`.

    Raises:
        InputError: if it cannot be read, or a field is of another type; the sentence names it.
    """
    result = read_object(path)
    try:
        # Whole numbers become floats where those are meant.
        result = {name: read_value(FIELDS.get(name, Any), value, name) for name, value in result.items()}
        read_value(dict[str, Any], result.get("hardware", {}).get("versions", {}), "hardware.versions")
    except InputError as error:
        raise InputError(f"{path} is not the result of a run: {error}") from None
    return result


def read_part(cls: type[T], values: Any, where: str = "test") -> T:
    """Make a dataclass from a part of a result.

    Args:
        cls: the dataclass.
        values: what should be an object with its fields.
        where: what the part is called in the result.

    Raises:
        InputError: if a field is missing, unknown or of another type; the sentence names it.
    """
    part: T = read_value(cls, values, where)
    return part


def read_own(cls: type[T], tested: Mapping[str, Any]) -> T:
    """Make a dataclass of those of the values that `Experiment.test` gave that are its fields."""
    return read_part(cls, {field.name: tested[field.name] for field in dataclasses.fields(cls)})  # type: ignore[arg-type]


def require(result: Mapping[str, Any], *names: str) -> None:
    """Refuse a result that lacks something.

    Raises:
        InputError: if one of the names is not in it.
    """
    for name in names:
        if name not in result:
            raise InputError(f"the result of the run lacks {name!r}; test the run again with `srwm train --resume`")
