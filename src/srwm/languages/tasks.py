"""Tasks of state tracking: sequences of symbols with a right answer at every position, drawn, never stored."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from srwm.data.random import random_bits, random_integers, stream_key

IGNORED = -100
"""The target of what only fills up a batch, behind the end of a shorter sequence."""

Draw = Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]]
"""From a key and a length for each row (int64 [...rows]) and the longest length to symbols and targets
[...rows, longest] on the device of the keys, all as `srwm.data.random` makes them. What stands behind the length of a
row does not matter."""

Integers = NDArray[np.int64]
NumpyDraw = Callable[[np.random.Generator, int, int], tuple[Any, Any]]
"""From a generator, a number of sequences and their length to symbols and targets, both [sequences, length]."""


@dataclass(frozen=True)
class Task:
    """A language to recognise, or anything else that has an answer at every position of a sequence.

    See `numpy_task` for one of your own in NumPy.

    Example:
        >>> def draw(key, length, longest):
        ...     bits = draw_symbols(key, 2, longest)
        ...     return bits, bits.cummax(dim=-1).values
        >>> task = Task("any", "was there a one?", ("0", "1"), 2, draw)
        >>> keys = torch.arange(2)
        >>> draw_sequences(task, keys, torch.tensor([3, 5]), 5).symbols.shape
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
    """Draws sequences, each a function of its key and its length alone."""
    multiple: int = 1
    """Only lengths that are multiples of this have sequences."""
    transitions: tuple[tuple[int, ...], ...] | None = None
    """`transitions[answer][symbol]` is the next answer, where it follows from the one before, with 0 before the first
    symbol; None where it takes more to know it."""
    answers: tuple[str, ...] = ()
    """What the answers 0, 1, ... are called; empty for their numbers."""


class Sequences(NamedTuple):
    """Sequences of any lengths, side by side."""

    symbols: Int[Tensor, "*rows t"]
    """What is read; 0 behind the end of a shorter sequence."""
    targets: Int[Tensor, "*rows t"]
    """The right answer at each position; `IGNORED` behind the end."""


def lengths_between(task: Task, shortest: int, longest: int) -> range:
    """Give the lengths in a range that a task has; where there is none, the longest one below."""
    step = task.multiple
    first, last = max(-(-shortest // step) * step, step), longest - longest % step
    return range(first, last + 1, step) if first <= last else range(max(last, step), max(last, step) + 1)


def draw_batch(
    task: Task,
    steps: Int[Tensor, "*steps"],
    lengths: range,
    *,
    seed: int,
    rng_stream: int,
    batch_size: int,
    same_length: bool,
    longest: int | None = None,
) -> Sequences:
    """Draw the sequences of some steps: a pure function of (seed, rng_stream, step), on the steps' device.

    Args:
        task: what is asked.
        steps: numbers of the steps.
        lengths: which lengths there are, each drawn as often, as `lengths_between` gives them.
        seed: of the run.
        rng_stream: keeps training and test apart.
        batch_size: sequences of a step.
        same_length: whether all sequences of a step are equally long.
        longest: width of what is given; None for the longest of the lengths.

    Returns:
        Sequences [*steps, batch_size, longest].
    """
    choices = torch.full((*steps.shape, 1 if same_length else batch_size), len(lengths), device=steps.device)
    length = lengths.start + lengths.step * random_integers(stream_key(seed, 2 * rng_stream, steps), choices)
    rows = steps[..., None] * batch_size + torch.arange(batch_size, device=steps.device)
    keys = stream_key(seed, 2 * rng_stream + 1, rows)
    return draw_sequences(task, keys, length.expand_as(keys), lengths[-1] if longest is None else longest)


def draw_sequences(task: Task, keys: Int[Tensor, "*rows"], length: Int[Tensor, "*rows"], longest: int) -> Sequences:
    """Draw a sequence of a given length for each key, filled up to the longest."""
    symbols, targets = task.draw(keys, length, longest)
    is_behind = torch.arange(longest, device=keys.device) >= length[..., None]
    return Sequences(symbols.masked_fill(is_behind, 0), targets.masked_fill(is_behind, IGNORED))


def draw_symbols(keys: Int[Tensor, "*rows"], below: int, number: int) -> Int[Tensor, "*rows number"]:
    """Draw integers in [0, below) evenly, so many for each key."""
    return random_bits(keys, [number]) * below >> 32


def split_keys(keys: Int[Tensor, "*rows"], number: int) -> tuple[Int[Tensor, "*rows"], ...]:
    """Make further keys of each, for what is drawn independently of one another."""
    high, low = random_bits(keys, [2, number]).unbind(dim=-2)
    return (high << 32 | low).unbind(dim=-1)


def numpy_task(
    name: str, title: str, symbols: tuple[str, ...], num_classes: int, draw: NumpyDraw, *, multiple: int = 1
) -> Task:
    """Make a task of a function of NumPy.

    Args:
        name: what recipes call it.
        title: what is asked at each position.
        symbols: what the symbols 0, 1, ... are called.
        num_classes: answers to choose from.
        draw: from a generator, a number of sequences and their length to symbols and targets, both
            [sequences, length]; it must take all that is random from the generator.
        multiple: only lengths that are multiples of this have sequences.

    Raises:
        ValueError: when sequences are drawn, if they are something else than that.

    Example:
        >>> def draw(generator, sequences, length):
        ...     numbers = generator.integers(4, size=(sequences, length))
        ...     return numbers, np.maximum.accumulate(numbers, axis=1)
        >>> task = numpy_task("maximum", "the largest number so far", tuple("0123"), 4, draw)
    """

    def draw_step(keys: Tensor, length: Tensor, longest: int) -> tuple[Integers, Integers]:
        """All rows of one step, with a generator of its own."""
        generator = np.random.Generator(np.random.Philox(key=int(keys[0]) % 2**64))
        found = np.zeros((2, len(keys), longest), dtype=np.int64)
        for each in length.unique().tolist():
            rows = (length == each).numpy()
            drawn = draw(generator, int(rows.sum()), each)
            for place, (what, below) in enumerate((("symbols", len(symbols)), ("targets", num_classes))):
                _check(f"{what} of task {name!r}", drawn[place], (int(rows.sum()), each), below)
                found[place, rows, :each] = drawn[place]
        return found[0], found[1]

    def draw_rows(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        steps = zip(keys.cpu().reshape(-1, keys.shape[-1]), length.cpu().reshape(-1, keys.shape[-1]), strict=True)
        pairs = [draw_step(*step, longest) for step in steps]
        found = [torch.from_numpy(np.stack(each)).to(keys.device) for each in zip(*pairs, strict=True)]
        return found[0].reshape(*keys.shape, longest), found[1].reshape(*keys.shape, longest)

    return Task(name, title, symbols, num_classes, draw_rows, multiple)


def _check(what: str, values: Any, shape: tuple[int, int], below: int) -> None:
    """Refuse what a task of one's own may have drawn wrong."""
    if not isinstance(values, np.ndarray) or values.shape != shape or values.dtype.kind not in "iu":
        kind = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise ValueError(f"{what}: expected an array of whole numbers of shape {shape}, got {kind}")
    if values.min() < 0 or values.max() >= below:
        raise ValueError(f"{what}: expected 0 to {below - 1}, got {values.min()} to {values.max()}")
