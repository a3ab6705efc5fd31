"""Strict JSON: no NaN, no repeated keys, and a sentence that names the file when something is wrong."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from srwm.errors import InputError


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
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_repeats)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it does not hold an object in braces")
    return value


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Raises:
        InputError: if it cannot be read or holds something else.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return parse_object(data)
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        # Once through, however many keys there are.
        number = Counter(name for name, _ in pairs)
        repeated = next(name for name in number if number[name] > 1)
        raise ValueError(f"the key {repeated!r} stands in it twice")
    return values
