"""Strict JSON: no NaN, no repeated keys, and a sentence that names the file when something is wrong."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from srwm.errors import InputError

from .reading import read_file

MOST_BYTES = 1 << 25
"""Bytes of the largest file of JSON that is read."""
MOST_NESTED = 100
"""How deep objects and lists may stand in one another: what is read can then be written and shown, too."""
MOST_DIGITS = 300
"""Digits of the longest whole number: every other one is a float as well."""


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Write an object as indented JSON; equal values give equal bytes.

    Raises:
        ValueError: if a number is not finite.
        TypeError: if something is no JSON value.
    """
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        ValueError: if the text is not one JSON object, with the reason.
    """
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole, object_pairs_hook=_no_repeats
        )
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it does not hold an object in braces")
    if _is_nested_too_deeply(value):
        raise ValueError(f"it is nested too deeply; expected at most {MOST_NESTED} levels")
    return value


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Raises:
        InputError: if it cannot be read or holds something else.
    """
    data = read_file(path, MOST_BYTES)
    try:
        return parse_object(data)
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{_short(text)} is too large a number")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"{_short(text)} is too large a number")
    return int(text)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:20]}... ({len(text):,} digits)"


def _is_nested_too_deeply(value: Any) -> bool:
    """Whether objects and lists stand deeper in one another than is read; without calls in calls, for it may be so."""
    level = [value]
    for _ in range(MOST_NESTED):
        level = [
            part
            for each in level
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} stands in it twice")
    return values
