"""Tasks that a finite automaton can do: parity, counting modulo something, products in a group."""

import numpy as np

from .groups import alternating_group, check_group, symmetric_group
from .tasks import Integers, Task


def parity() -> Task:
    """Bits; is the number of ones so far odd?"""

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        bits = generator.integers(2, size=(sequences, length))
        return bits, bits.cumsum(axis=1) % 2

    return Task("parity", "is the number of ones so far odd?", ("0", "1"), 2, draw)


def repetition(name: str, word: str) -> Task:
    """A word again and again; has it just come to its end?

    Args:
        name: of the task.
        word: what is repeated, such as "abab" for (abab)*.
    """
    letters = tuple(sorted(set(word)))

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        positions = np.tile(np.arange(length), (sequences, 1))
        symbols = np.array([letters.index(letter) for letter in word])[positions % len(word)]
        return symbols, (positions % len(word) == len(word) - 1).astype(np.int64)

    return Task(name, f"({word})*: has a {word} just ended?", letters, 2, draw)


def sum_modulo(modulus: int) -> Task:
    """Numbers from 0 to modulus - 1; what is the rest of their sum so far?

    Raises:
        ValueError: if the modulus is less than 2.
    """
    if modulus < 2:
        raise ValueError(f"modulus={modulus}; expected at least 2")

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        numbers = generator.integers(modulus, size=(sequences, length))
        return numbers, numbers.cumsum(axis=1) % modulus

    names = tuple(str(number) for number in range(modulus))
    return Task(f"sum-mod-{modulus}", f"the sum so far modulo {modulus}", names, modulus, draw)


def group_product(name: str, table: Integers) -> Task:
    """Elements of a group; what is their product so far?

    Args:
        name: of the task.
        table: `table[i, j]` is the product of the elements i and j; 0 is the identity.

    Raises:
        ValueError: if the table is not that of a group.
    """
    check_group(table)
    size = len(table)

    def draw(generator: np.random.Generator, sequences: int, length: int) -> tuple[Integers, Integers]:
        elements = generator.integers(size, size=(sequences, length))
        products = np.empty_like(elements)
        product = np.zeros(sequences, dtype=np.int64)
        for position in range(length):
            product = table[product, elements[:, position]]
            products[:, position] = product
        return elements, products

    title = f"the product so far in a group of {size} elements"
    return Task(name, title, tuple(str(element) for element in range(size)), size, draw)


def regular_tasks() -> list[Task]:
    """All that have a name; sums modulo other numbers are made when they are asked for."""
    return [
        parity(),
        repetition("aa-star", "aa"),
        repetition("abab-star", "abab"),
        sum_modulo(3),
        group_product("s3", symmetric_group(3)),
        group_product("a5", alternating_group(5)),
        group_product("s5", symmetric_group(5)),
    ]
