"""Finite groups by their tables: what is `i` times `j`?"""

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tasks import Integers


def symmetric_group(degree: int) -> Integers:
    """The table of all permutations of `degree` things: `table[i, j]` does `i` first and then `j`; 0 changes nothing.

    Example:
        >>> symmetric_group(2)
        array([[0, 1],
               [1, 0]])
    """
    return _table(list(permutations(range(degree))))


def alternating_group(degree: int) -> Integers:
    """The table of the even permutations of `degree` things; see `symmetric_group`."""
    return _table([each for each in permutations(range(degree)) if _is_even(each)])


def check_group(table: NDArray[Any]) -> None:
    """Refuse what is not the table of a group whose element 0 changes nothing.

    Raises:
        ValueError: if it is none, with the first law that it breaks.
    """
    size = len(table)
    if table.ndim != 2 or table.shape != (size, size) or size == 0 or table.dtype.kind not in "iu":
        raise ValueError(f"expected a square table of whole numbers, got {table.dtype} of shape {table.shape}")
    elements = np.arange(size)
    if not ((table >= 0) & (table < size)).all():
        raise ValueError(f"expected products from 0 to {size - 1}, got {table.min()} to {table.max()}")
    if not ((table[0] == elements).all() and (table[:, 0] == elements).all()):
        raise ValueError("expected element 0 to be the identity; row 0 or column 0 of the table says otherwise")
    # Row by row: the whole comparison at once would take size ** 3 numbers.
    for first in elements:
        if not (table[table[first]] == table[first][table]).all():
            raise ValueError(f"expected (a b) c = a (b c) for all elements; it fails for a = {first}")
    if not (table == 0).any(axis=1).all():
        raise ValueError("expected an inverse of each element; some row of the table has no 0")


def _table(elements: list[tuple[int, ...]]) -> Integers:
    number = {each: place for place, each in enumerate(elements)}
    return np.array([[number[tuple(then[i] for i in first)] for then in elements] for first in elements])


def _is_even(permutation: tuple[int, ...]) -> bool:
    pairs = [(i, j) for j in range(len(permutation)) for i in range(j)]
    return sum(permutation[i] > permutation[j] for i, j in pairs) % 2 == 0
