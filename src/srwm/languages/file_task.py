"""A task of one's own as a file: a sequence a line, with the right answer at each position."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from srwm.errors import InputError
from srwm.runs.reading import read_file

from .tasks import Integers, Task, numpy_task

_MOST_BYTES = 1 << 30


def file_task(name: str, path: Path, num_symbols: int, num_classes: int) -> Task:
    """Make a task of a file of lines such as `{"symbols": [0, 1, 1], "targets": [0, 1, 0]}`.

    A sequence of a length is the beginning of one in the file that is at least as long, since the answers at its
    beginning do not depend on its end.

    Args:
        name: of the task.
        path: the file, one JSON object a line.
        num_symbols: symbols are whole numbers from 0 to this, without it.
        num_classes: the same of answers.

    Raises:
        InputError: if the file cannot be read, or a line is something else; the sentence names the line.
    """
    pairs = _read_pairs(path, num_symbols, num_classes)
    lengths = np.array([len(symbols) for symbols, _ in pairs])

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        (long_enough,) = np.nonzero(lengths >= length)
        if len(long_enough) == 0:
            raise InputError(f"the longest sequence of {path} has {lengths.max():,} symbols; {length:,} were asked for")
        chosen = [pairs[place] for place in generator.choice(long_enough, size=sequences)]
        symbols, targets = (np.array([pair[part][:length] for pair in chosen]) for part in (0, 1))
        return symbols, targets

    names = tuple(str(symbol) for symbol in range(num_symbols))
    return numpy_task(name, f"sequences of {path}", names, num_classes, draw)


def _read_pairs(path: Path, num_symbols: int, num_classes: int) -> list[tuple[list[int], list[int]]]:
    try:
        lines = read_file(path, _MOST_BYTES).decode().splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text in UTF-8: {error}") from error
    pairs = []
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        try:
            values: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where} is no JSON: {error}") from error
        if not isinstance(values, dict) or set(values) != {"symbols", "targets"}:
            raise InputError(f'{where}: expected an object with "symbols" and "targets", got {line[:60]}')
        symbols = _whole_numbers(values["symbols"], num_symbols, f'{where}, "symbols"')
        targets = _whole_numbers(values["targets"], num_classes, f'{where}, "targets"')
        if len(symbols) != len(targets):
            raise InputError(f"{where}: expected a target for each symbol, got {len(symbols)} and {len(targets)}")
        pairs.append((symbols, targets))
    if not pairs:
        raise InputError(f"{path} is empty; expected a sequence a line")
    return pairs


def _whole_numbers(values: Any, below: int, where: str) -> list[int]:
    if not isinstance(values, list) or not values:
        raise InputError(f"{where}: expected a list of whole numbers, not empty")
    for value in values:
        if type(value) is not int or not 0 <= value < below:
            raise InputError(f"{where}: expected whole numbers from 0 to {below - 1}, got {value!r}")
    return values
