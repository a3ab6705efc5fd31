"""Tasks that take counting without bound: a^n b^n, a^n b^n c^n, and brackets."""

import numpy as np

from .dyck_words import OPEN, bracket_partners, draw_dyck_words
from .tasks import Integers, Task


def counters(name: str, letters: str) -> Task:
    """As many of each letter, one letter after the other: a^n b^n for "ab"; is what was read such a word?"""

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        word = np.repeat(np.arange(len(letters)), length // len(letters))
        targets = (np.arange(length) == length - 1).astype(np.int64)
        return np.tile(word, (sequences, 1)), np.tile(targets, (sequences, 1))

    title = f"{' '.join(f'{letter}^n' for letter in letters)}: is this a whole word?"
    return Task(name, title, tuple(letters), 2, draw, multiple=len(letters))


def dyck_1() -> Task:
    """Balanced brackets of one kind; is every bracket closed?"""

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        words = draw_dyck_words(generator, sequences, length)
        return words, (_depths(words, OPEN) == 0).astype(np.int64)

    return Task("dyck-1", "Dyck-1: is every bracket closed?", ("(", ")"), 2, draw, multiple=2)


def shuffle_2() -> Task:
    """Two kinds of brackets, each balanced, in any order; is every bracket closed?

    Drawn as the paper's data are: one word of balanced brackets, each pair of which is of either kind.
    """

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        words = draw_dyck_words(generator, sequences, length)
        kinds = generator.integers(2, size=words.shape)
        partners = np.array([bracket_partners(word) for word in words.tolist()])
        symbols = words + 2 * np.take_along_axis(kinds, partners, axis=1)
        closed = (_depths(symbols, 0) == 0) & (_depths(symbols, 2) == 0)
        return symbols, closed.astype(np.int64)

    return Task("shuffle-2", "Shuffle-2: is every bracket of both kinds closed?", tuple("()[]"), 2, draw, multiple=2)


def reset_dyck_1() -> Task:
    """Brackets of one kind and a reset, which makes all before it forgotten; is a bracket open since the last reset?

    Drawn as the paper's data are: the beginning of a word of balanced brackets, a reset, a whole word.
    """

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        symbols = np.empty((sequences, length), dtype=np.int64)
        resets = generator.integers(0, length, size=sequences)
        resets -= (length - 1 - resets) % 2  # what follows is a whole word
        resets = np.where(resets < 0, resets + 2, resets)
        for row, reset in enumerate(resets.tolist()):
            # The word that is cut short is up to twice as long as what is kept of it.
            whole = reset + int(generator.integers(reset + 1))
            cut = draw_dyck_words(generator, 1, whole + whole % 2)[0, :reset]
            symbols[row] = np.concatenate([cut, [_RESET], draw_dyck_words(generator, 1, length - 1 - reset)[0]])
        depths = np.zeros_like(symbols)
        depth = np.zeros(sequences, dtype=np.int64)
        for position in range(length):
            symbol = symbols[:, position]
            depth = np.where(symbol == _RESET, 0, depth + np.where(symbol == OPEN, 1, -1))
            depths[:, position] = depth
        return symbols, (depths > 0).astype(np.int64)

    title = "reset Dyck-1: is a bracket open since the last reset?"
    return Task("reset-dyck-1", title, ("(", ")", "#"), 2, draw)


_RESET = 2


def context_free_tasks() -> list[Task]:
    """All of them."""
    return [counters("anbn", "ab"), counters("anbncn", "abc"), shuffle_2(), dyck_1(), reset_dyck_1()]


def _depths(symbols: Integers, opening: int) -> Integers:
    """How many brackets of a kind are open after each position; the closing one has the next number."""
    steps = (symbols == opening).astype(np.int64) - (symbols == opening + 1)
    depths: Integers = steps.cumsum(axis=1)
    return depths
