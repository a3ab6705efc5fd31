"""Strict JSON: no NaN, no repeated keys, nothing deep or huge, and a sentence that names the file when it is wrong."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from srwm.errors import InputError

from .reading import read_file

MOST_BYTES = 1 << 25
"""Bytes of the largest file of JSON that is read."""

_DEEPEST = 64
"""Objects and lists within each other; what walks through them calls itself once for each."""


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
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("it does not hold an object in braces")
    return value


def parse_json(text: str | bytes) -> Any:
    """Read one JSON value.

    Raises:
        ValueError: if the text is not JSON as this module takes it, with the reason.
    """
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, parse_int=_in_64_bits, object_pairs_hook=_no_repeats
        )
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_depth(value)
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
        raise ValueError(f"{_begun(text)} is too large a number")
    return number


def _in_64_bits(text: str) -> int:
    # Digits are counted first: to read very many takes long, and Python refuses it in words of its own.
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"{_begun(text)} is too large a whole number; expected one of 64 bits")
    return int(text)


def _begun(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ValueError(f"it is nested too deeply; expected at most {_DEEPEST} levels")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        # Once through, however many keys there are.
        number = Counter(name for name, _ in pairs)
        repeated = next(name for name in number if number[name] > 1)
        raise ValueError(f"the key {_begun(repeated)!r} stands in it twice")
    return values
