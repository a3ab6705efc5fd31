"""Tasks of state tracking: sequences of symbols with a right answer at every position, drawn, never stored."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

IGNORED = -100
"""The target of what only fills up a batch, behind the end of a shorter sequence."""

Integers = NDArray[np.int64]
Draw = Callable[[np.random.Generator, int, int], tuple[Integers, Integers]]
"""From a generator, a number of sequences and their length to symbols and targets, both [sequences, length]."""


@dataclass(frozen=True)
class Task:
    """A language to recognise, or anything else that has an answer at every position of a sequence.

    Example:
        >>> def draw(generator, sequences, length):
        ...     symbols = generator.integers(4, size=(sequences, length))
        ...     return symbols, symbols.max(axis=1, keepdims=True) + 0 * symbols
        >>> task = Task("maximum", "the largest symbol of the sequence", tuple("0123"), 4, draw)
        >>> draw_sequences(task, np.random.default_rng(0), [3, 5]).symbols.shape
        torch.Size([2, 5])
    """

    name: str
    """What recipes call it."""
    title: str
    """What is asked at each position."""
    symbols: tuple[str, ...]
    """What the symbols 0, 1, ... are called."""
    num_classes: int
    """Answers to choose from."""
    draw: Draw
    """Draws sequences of one length; a function of the generator alone, with the same symbols for the same numbers."""
    multiple: int = 1
    """Only lengths that are multiples of this have sequences."""


class Sequences(NamedTuple):
    """Sequences of any lengths, side by side."""

    symbols: Int[Tensor, "b t"]
    """What is read; 0 behind the end of a shorter sequence."""
    targets: Int[Tensor, "b t"]
    """The right answer at each position; `IGNORED` behind the end."""


def generator_of(seed: int, stream: int, step: int) -> np.random.Generator:
    """Make the generator of a step: what it draws is a function of these three numbers."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, stream, step]))


def lengths_between(task: Task, shortest: int, longest: int) -> list[int]:
    """Give the lengths in a range that a task has; where there is none, the longest one below."""
    first = -(-shortest // task.multiple) * task.multiple
    found = list(range(max(first, task.multiple), longest + 1, task.multiple))
    return found or [max(longest - longest % task.multiple, task.multiple)]


def draw_lengths(
    task: Task, generator: np.random.Generator, sequences: int, shortest: int, longest: int, *, same: bool
) -> list[int]:
    """Draw lengths evenly from a range, one for each sequence or the same for all."""
    choices = lengths_between(task, shortest, longest)
    places = generator.integers(len(choices), size=1 if same else sequences)
    lengths = [choices[place] for place in places]
    return lengths * sequences if same else lengths


def draw_sequences(task: Task, generator: np.random.Generator, lengths: list[int]) -> Sequences:
    """Draw a sequence of each of some lengths, filled up to the longest.

    Raises:
        ValueError: if the task draws something else than it says.
    """
    symbols = np.zeros((len(lengths), max(lengths)), dtype=np.int64)
    targets = np.full_like(symbols, IGNORED)
    for length in sorted(set(lengths)):
        rows = [row for row, own in enumerate(lengths) if own == length]
        drawn, right = task.draw(generator, len(rows), length)
        for what, values, below in (("symbols", drawn, len(task.symbols)), ("targets", right, task.num_classes)):
            _check(f"{what} of task {task.name!r}", values, (len(rows), length), below)
        symbols[rows, :length], targets[rows, :length] = drawn, right
    return Sequences(torch.from_numpy(symbols), torch.from_numpy(targets))


def _check(what: str, values: Any, shape: tuple[int, int], below: int) -> None:
    """Refuse what a task of one's own may have drawn wrong."""
    if not isinstance(values, np.ndarray) or values.shape != shape or values.dtype.kind not in "iu":
        kind = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise ValueError(f"{what}: expected an array of whole numbers of shape {shape}, got {kind}")
    if values.min() < 0 or values.max() >= below:
        raise ValueError(f"{what}: expected 0 to {below - 1}, got {values.min()} to {values.max()}")
