"""Reads plain data and NumPy arrays out of pickle files, and runs nothing.

A pickle is a program for a small machine that may call any function of Python. Data sets are published as pickles all
the same. This is a machine of our own for them: it knows the instructions that build dictionaries, lists, tuples,
texts, numbers and NumPy arrays, whatever version of Python wrote them (protocols 0 to 5), and refuses every other. It
has no means to import or call anything: the few names that NumPy's arrays need are words to it (see `_numpy_words`).
"""

import mmap
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from srwm.errors import InputError
from srwm.runs.reading import open_file

from ._numpy_words import ArrayToBe, DtypeToBe, NotPlainError, Word, call_word
from ._shown import shown

Buffer: TypeAlias = bytes | mmap.mmap

_MAX_INTEGER_BYTES = 16
_MAX_INSTRUCTIONS = 5_000_000
"""CIFAR-100 has 300,000. Each may take a hundred bytes of memory, whatever its own size."""
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.?)")
_ESCAPED = {b"\\": b"\\", b"'": b"'", b'"': b'"', b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_MARK = object()
_BROKEN = (ValueError, IndexError, KeyError, TypeError, OverflowError, SyntaxError, struct.error, MemoryError)
"""What the machine stumbles over when its program is not one that a pickler wrote."""


def read_numpy_pickle(path: Path) -> Any:
    """Read a pickle file of plain data and NumPy arrays.

    Returns:
        The data; texts that Python 2 wrote are bytes, arrays are read-only.

    Raises:
        InputError: the file is missing, broken, or holds anything else.
    """
    with open_file(path) as file:
        if not os.fstat(file.fileno()).st_size:
            raise InputError(f"{path} is empty")
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
        with data:
            return parse_numpy_pickle(data, str(path))


def parse_numpy_pickle(data: Buffer, what: str) -> Any:
    """Read the bytes of such a file; `what` names it in a sentence about an error."""
    machine = _Machine(data, what)
    try:
        return machine.run()
    except InputError:
        raise
    except NotPlainError as error:
        raise machine.refuse(str(error)) from error
    except _BROKEN as error:
        raise InputError(f"{what} is broken at byte {machine.position}: {shown(error)}") from error


class _Machine:
    """The machine: a program, a stack and a memory of numbered values."""

    def __init__(self, data: Buffer, what: str) -> None:
        self.data = data
        self.what = what
        self.position = 0
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}
        self.unfinished = 0
        self.made = 0
        """How many bytes and letters calls have made; one text in the memory could serve for very many."""

    def run(self) -> Any:
        """Run the program to its end and give its result."""
        for _ in range(_MAX_INSTRUCTIONS):
            code = self.take(1)
            if code == b".":
                break
            if code not in _INSTRUCTIONS:
                raise self.refuse(f"the instruction {code!r} at byte {self.position - 1}")
            _INSTRUCTIONS[code](self)
        else:
            raise ValueError(f"it has more than {_MAX_INSTRUCTIONS} instructions")
        result = self.pop()
        if self.stack or self.unfinished or isinstance(result, Word):
            raise ValueError("it does not end with one finished value")
        return result

    def refuse(self, thing: str) -> InputError:
        plain = "dictionaries, lists, numbers, texts and NumPy arrays"
        return InputError(f"{self.what} holds {thing}; only {plain} are read from a pickle")

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise ValueError("it ends too early")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.position)
        if end < 0:
            raise ValueError("it ends too early")
        return self.take(end + 1 - self.position)[:-1]

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def skip(self, size: int) -> None:
        self.take(size)

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a value is missing")
        return value

    def pop_to_mark(self) -> list[Any]:
        place = len(self.stack) - 1
        while self.stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise ValueError("a mark is missing")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def drop(self) -> None:
        self.pop()

    def drop_to_mark(self) -> None:
        self.pop_to_mark()

    def pop_some(self, size: int) -> list[Any]:
        return [self.pop() for _ in range(size)][::-1]

    def put(self, key: int) -> None:
        value = self.stack[-1]
        if value is _MARK:
            raise ValueError("a value is missing")
        if isinstance(value, ArrayToBe | DtypeToBe):
            value.places.append(key)
        self.memory[key] = value

    def get(self, key: int) -> None:
        value = self.memory[key]
        if isinstance(value, ArrayToBe | DtypeToBe):
            raise ValueError("an array is used before it is finished")
        self.push(value)

    def append(self, values: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise ValueError("something that is not a list is appended to")
        self.stack[-1].extend(values)

    def set_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(values) % 2:
            raise ValueError("a dictionary is not filled with keys and values")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str | bytes | int):
                raise self.refuse(f"a dictionary with a {type(key).__name__} for a key")
            target[key] = value

    def dictionary(self) -> None:
        values = self.pop_to_mark()
        self.push({})
        self.set_items(values)

    def word(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a name is not text")
        word = Word.of(f"{module}.{name}")
        if word is None:
            raise self.refuse(shown(f"{module}.{name}"))
        self.push(word)

    def reduce(self) -> None:
        word, arguments = self.pop_some(2)
        if not isinstance(word, Word) or not isinstance(arguments, tuple):
            raise ValueError("something that is not a name is called")
        value = call_word(word, arguments)
        self.unfinished += isinstance(value, ArrayToBe | DtypeToBe)
        self.made += len(value) if isinstance(value, str | bytes) else 0
        if self.made > len(self.data):
            raise ValueError("its calls make more text than it holds")
        self.push(value)

    def build(self) -> None:
        unfinished, state = self.pop_some(2)
        if not isinstance(unfinished, ArrayToBe | DtypeToBe):
            raise self.refuse("an object with a state")
        value = unfinished.finish(state)
        self.unfinished -= 1
        for place in unfinished.places:
            self.memory[place] = value
        self.push(value)

    def old_integer(self) -> None:
        text = self.line()
        # Protocol 0 writes truth values so.
        self.push({b"00": False, b"01": True}[text] if text in (b"00", b"01") else _small_integer(text))

    def old_text(self) -> None:
        quoted = self.line()
        if len(quoted) < 2 or quoted[:1] != quoted[-1:] or quoted[:1] not in b"\"'":
            raise ValueError("a text has no quotation marks")
        self.push(_ESCAPE.sub(_unescape, quoted[1:-1]))

    def big_integer(self, size: int) -> None:
        if size > _MAX_INTEGER_BYTES:
            raise ValueError(f"an integer has {size} bytes")
        self.push(self.number(size, signed=True))

    def protocol(self) -> None:
        number = self.number(1)
        if number > 5:
            raise self.refuse(f"protocol {number}")


def _small_integer(text: bytes) -> int:
    if len(text) > 40:
        raise ValueError("an integer has too many digits")
    return int(text)


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes.fromhex(code[1:].decode()) if len(code) == 3 else _ESCAPED[code]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


_INSTRUCTIONS: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": _Machine.protocol,
    b"\x95": lambda m: m.skip(8),  # The size of a frame: of use to those who read piece by piece.
    # Plain values.
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"I": _Machine.old_integer,
    b"L": lambda m: m.push(_small_integer(m.line().removesuffix(b"L"))),
    b"J": lambda m: m.push(m.number(4, signed=True)),
    b"K": lambda m: m.push(m.number(1)),
    b"M": lambda m: m.push(m.number(2)),
    b"\x8a": lambda m: m.big_integer(m.number(1)),
    b"\x8b": lambda m: m.big_integer(m.number(4)),
    b"F": lambda m: m.push(float(m.line())),
    b"G": lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    # Texts and bytes.
    b"S": _Machine.old_text,
    b"T": lambda m: m.push(m.take(m.number(4, signed=True))),
    b"U": lambda m: m.push(m.take(m.number(1))),
    b"V": lambda m: m.push(m.line().decode("raw-unicode-escape")),
    b"X": lambda m: m.push(_text(m.take(m.number(4)))),
    b"\x8c": lambda m: m.push(_text(m.take(m.number(1)))),
    b"\x8d": lambda m: m.push(_text(m.take(m.number(8)))),
    b"C": lambda m: m.push(m.take(m.number(1))),
    b"B": lambda m: m.push(m.take(m.number(4))),
    b"\x8e": lambda m: m.push(m.take(m.number(8))),
    b"\x96": lambda m: m.push(m.take(m.number(8))),
    # Containers.
    b"(": lambda m: m.push(_MARK),
    b"1": _Machine.drop_to_mark,
    b"0": _Machine.drop,
    b")": lambda m: m.push(()),
    b"t": lambda m: m.push(tuple(m.pop_to_mark())),
    b"\x85": lambda m: m.push(tuple(m.pop_some(1))),
    b"\x86": lambda m: m.push(tuple(m.pop_some(2))),
    b"\x87": lambda m: m.push(tuple(m.pop_some(3))),
    b"]": lambda m: m.push([]),
    b"l": lambda m: m.push(m.pop_to_mark()),
    b"a": lambda m: m.append(m.pop_some(1)),
    b"e": lambda m: m.append(m.pop_to_mark()),
    b"}": lambda m: m.push({}),
    b"d": _Machine.dictionary,
    b"s": lambda m: m.set_items(m.pop_some(2)),
    b"u": lambda m: m.set_items(m.pop_to_mark()),
    # The memory.
    b"p": lambda m: m.put(_small_integer(m.line())),
    b"q": lambda m: m.put(m.number(1)),
    b"r": lambda m: m.put(m.number(4)),
    b"\x94": lambda m: m.put(len(m.memory)),
    b"g": lambda m: m.get(_small_integer(m.line())),
    b"h": lambda m: m.get(m.number(1)),
    b"j": lambda m: m.get(m.number(4)),
    # NumPy's arrays.
    b"c": lambda m: m.word(m.line().decode(), m.line().decode()),
    b"\x93": lambda m: m.word(*m.pop_some(2)),
    b"R": _Machine.reduce,
    b"b": _Machine.build,
}
