"""What a page may ask for: each part of a request is checked before anything else sees it."""

import base64
import binascii
import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from jaxtyping import UInt8
from numpy import ndarray

from srwm.errors import InputError
from srwm.runs.json_objects import parse_object

from .drawing import Ink, Look, Point, draw_image

MAX_JSON_BYTES = 512 * 1024
"""Of a request in JSON; the longest drawing fits."""
MAX_PICTURE_BYTES = 8 * 2**20
"""Of an image file."""
MAX_POINTS = 8000
"""Of a drawing."""
MAX_NAME = 24
"""Letters of a class's name."""
_MOST_QUOTED = 40
"""Letters of what came, in a sentence about it."""
_MOST_REASON = 120
"""Letters of what is wrong with JSON; it may quote a key or a number of any length."""

_quote = reprlib.Repr()
_quote.maxstring = _quote.maxlong = _quote.maxother = _MOST_QUOTED


def parse_body(data: bytes, *keys: str) -> dict[str, Any]:
    """Read a request that has exactly these keys."""
    try:
        body = parse_object(data)
    except ValueError as error:
        raise InputError(f"the request is not valid JSON: {_shortened(str(error), _MOST_REASON)}") from None
    _check_keys("the request", body, keys)
    return body


def _check_keys(what: str, value: Mapping[str, Any], keys: Sequence[str]) -> None:
    unknown, missing = sorted(value.keys() - set(keys)), sorted(set(keys) - value.keys())
    wanted = ", ".join(keys) or "nothing"
    if unknown:
        raise InputError(f"{what} has the key {_quoted(unknown[0])}; expected {wanted}")
    if missing:
        raise InputError(f"{what} lacks the key {missing[0]!r}; expected {wanted}")


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """Take a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{name} is {_quoted(value)}; expected a whole number from {least} to {most}")
    return value


def choice(name: str, value: Any, choices: Sequence[int]) -> int:
    """Take one of some whole numbers."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in choices:
        raise InputError(f"{name} is {_quoted(value)}; expected one of {', '.join(map(str, choices))}")
    return value


def number_in_path(name: str, text: str, least: int, most: int) -> int:
    """Take a whole number within bounds from an address."""
    # Python reads digits of all scripts, and refuses numbers of thousands of them with an error of its own.
    if re.fullmatch(r"[0-9]{1,16}", text) is None:
        raise InputError(f"{name} is {_quoted(text)}; expected a whole number from {least} to {most}")
    return whole_number(name, int(text), least, most)


def class_name(value: Any) -> str:
    """Take the name of a class: any text that can be shown, but not too long."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME or not value.isprintable():
        raise InputError(f"the name is {_quoted(value)}; expected 1 to {MAX_NAME} letters that can be shown")
    return value.strip()


def ink_word(value: str) -> Ink:
    """Take a word for the ink of a picture."""
    for word in get_args(Ink):
        if value == word:
            found: Ink = word
            return found
    raise InputError(f"ink is {_quoted(value)}; expected one of {', '.join(get_args(Ink))}")


def drawn_image(value: Any, look: Look, shape: tuple[int, int, int]) -> UInt8[ndarray, "c size size"]:
    """Take a drawing: `{"strokes": [[[x, y], ...], ...]}`, or `{"pixels": ...}` that the server made of a picture."""
    if isinstance(value, dict) and "pixels" in value:
        _check_keys("the drawing", value, ("pixels",))
        return _pixels(value["pixels"], shape)
    if isinstance(value, dict):
        _check_keys("the drawing", value, ("strokes",))
        return draw_image(_strokes(value["strokes"]), look, shape)
    raise InputError(f'the drawing is {_quoted(value)}; expected {{"strokes": ...}} or {{"pixels": ...}}')


def encode_pixels(image: UInt8[ndarray, "c h w"]) -> str:
    """Write the bytes of an image as text."""
    return base64.b64encode(np.ascontiguousarray(image).tobytes()).decode()


def _pixels(value: Any, shape: tuple[int, int, int]) -> UInt8[ndarray, "c size size"]:
    channels, height, width = shape
    wanted = channels * height * width
    try:
        data = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != wanted:
        raise InputError(f"the pixels are not {wanted} bytes ({channels} x {height} x {width}) in base 64")
    return np.frombuffer(data, np.uint8).reshape(shape).copy()


def _strokes(value: Any) -> list[list[Point]]:
    if not isinstance(value, list) or not all(isinstance(stroke, list) for stroke in value):
        raise InputError("the strokes are not a list of lists of points")
    number = sum(map(len, value))
    if number > MAX_POINTS:
        raise InputError(f"the drawing has {number} points; at most {MAX_POINTS} are taken")
    strokes = [[_point(point) for point in stroke] for stroke in value if stroke]
    if not strokes:
        raise InputError("the drawing is empty")
    return strokes


def _point(value: Any) -> Point:
    match value:
        # To Python, true and false are numbers.
        case [x, y] if {type(x), type(y)} <= {int, float} and 0 <= x <= 1 and 0 <= y <= 1:
            return float(x), float(y)
    raise InputError(f"a point is {_quoted(value)}; expected [x, y], both from 0 to 1")


def _quoted(value: Any) -> str:
    """Show what came, but not all of it, however large it is and however deeply it is nested."""
    return _shortened(_quote.repr(value), _MOST_QUOTED)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
