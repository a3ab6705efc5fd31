"""The words that a pickle of NumPy arrays is written with, and what they mean; nothing is called by name."""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._shown import quoted

Meaning: TypeAlias = Literal["class", "dtype", "reconstruct", "frombuffer", "scalar", "encode", "no bytes"]

_MEANINGS: dict[str, Meaning] = {
    "numpy.ndarray": "class",
    "numpy.dtype": "dtype",
    # NumPy 1 and 2.
    "numpy.core.multiarray._reconstruct": "reconstruct",
    "numpy._core.multiarray._reconstruct": "reconstruct",
    "numpy.core.multiarray.scalar": "scalar",
    "numpy._core.multiarray.scalar": "scalar",
    "numpy.core.numeric._frombuffer": "frombuffer",
    "numpy._core.numeric._frombuffer": "frombuffer",
    # How Python 3 writes bytes for Python 2.
    "_codecs.encode": "encode",
    "__builtin__.bytes": "no bytes",
    "builtins.bytes": "no bytes",
}
_PLAIN_TYPE = re.compile(r"[biuf][1248]|[SU][0-9]{1,6}")


class NotPlainError(Exception):
    """An array holds something else than numbers or texts; the text names it."""


@dataclass(frozen=True)
class Word:
    """A name that stands for a part of NumPy."""

    meaning: Meaning

    @classmethod
    def of(cls, name: str) -> "Word | None":
        """Give the word of a name, if it is an allowed one."""
        return cls(_MEANINGS[name]) if name in _MEANINGS else None


@dataclass
class DtypeToBe:
    """A data type that still waits for its byte order."""

    code: str
    places: list[int] = field(default_factory=list)
    """Where the machine's memory holds it."""

    def finish(self, state: Any) -> np.dtype[Any]:
        """Give the data type, of one that NumPy pickled as `code` and `state`."""
        if not isinstance(state, tuple) or len(state) < 7:
            raise ValueError("a data type has no sound state")
        order = _as_text(state[1])
        if order not in ("<", ">", "=", "|") or state[3] is not None or state[4] is not None:
            raise NotPlainError("an array of records")
        return np.dtype(self.code).newbyteorder(order)  # type: ignore[arg-type]


@dataclass
class ArrayToBe:
    """An array that still waits for its content."""

    places: list[int] = field(default_factory=list)
    """Where the machine's memory holds it."""

    def finish(self, state: Any) -> NDArray[Any]:
        """Give the array, of one that NumPy pickled as `state`."""
        if not isinstance(state, tuple) or len(state) not in (4, 5):
            raise ValueError("an array has no sound state")
        shape, dtype, is_fortran, data = state[-4:]
        return _array(data, dtype, shape, "F" if is_fortran else "C")


def call_word(word: Word, arguments: tuple[Any, ...]) -> Any:
    """Give what NumPy's function of that name would give for plain arguments.

    Raises:
        ValueError: the arguments are not such as NumPy writes.
        NotPlainError: they make something that is not plain data.
    """
    match word.meaning, arguments:
        case "reconstruct", (Word(meaning="class"), tuple(), _):
            return ArrayToBe()
        case "dtype", (str() | bytes() as code, *_):
            text = _as_text(code)
            if not _PLAIN_TYPE.fullmatch(text):
                raise NotPlainError(f"an array of data type {quoted(text)}")
            return DtypeToBe(text)
        case "frombuffer", (data, dtype, shape, str() as order):
            return _array(data, dtype, shape, order)
        case "scalar", (dtype, data):
            return _array(data, dtype, (), "C").item()
        case "encode", (str() as text, str() as encoding) if encoding.replace("-", "") == "latin1":
            return text.encode("latin-1")
        case "no bytes", ():
            return b""
    raise ValueError("NumPy would not have written this")


def _array(data: Any, dtype: Any, shape: Any, order: str) -> NDArray[Any]:
    if not isinstance(dtype, np.dtype) or not isinstance(data, bytes) or order not in ("C", "F"):
        raise ValueError("an array has no sound content")
    if not isinstance(shape, tuple) or len(shape) > 32 or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError("an array has no sound shape")
    if math.prod(shape) * dtype.itemsize != len(data) or dtype.itemsize == 0:
        raise ValueError(f"an array of shape {shape} and type {dtype} holds {len(data)} bytes")
    return np.ndarray(shape, dtype, data, order="F" if order == "F" else "C")


def _as_text(value: Any) -> str:
    """Give a text that Python 2 may have written as bytes."""
    if not isinstance(value, str | bytes):
        raise ValueError("a text is missing")
    return value if isinstance(value, str) else value.decode("ascii")
