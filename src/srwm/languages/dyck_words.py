"""Words of balanced brackets as a grammar draws them, but of a length that is given.

The grammar is that of the paper's data (Bhattamishra, Ahuja and Goyal, EMNLP 2020): S becomes ( S ) with probability
0.5, S S with 0.25, and nothing with 0.25. A word stands for a tree, whose root is the word and whose other nodes are
its pairs of brackets; the grammar gives each node k children with a probability c_k of its own. Trees of a given size
are drawn exactly, after Devroye (2012): first how many nodes have how many children, then in which order; of the
rotations of an order, one is a tree.
"""

import numpy as np
from numpy.typing import NDArray

from .tasks import Integers

OPEN, CLOSE = 0, 1

_MOST_CHILDREN = 64
"""More have a probability below 1e-12 each."""


def _child_probabilities() -> NDArray[np.float64]:
    """The coefficients of C(z) = z/2 + C(z)^2/4 + 1/4, which is 2 - 2 sqrt(3/4 - z/2)."""
    coefficients = [np.sqrt(0.75)]
    for k in range(1, _MOST_CHILDREN + 1):
        # Those of sqrt(3/4) (1 - 2z/3)^(1/2), each from the one before.
        coefficients.append(coefficients[-1] * (0.5 - (k - 1)) / k * (-2 / 3))
    probabilities = -2 * np.array(coefficients)
    probabilities[0] += 2
    normalised: NDArray[np.float64] = probabilities / probabilities.sum()
    return normalised


_CHILDREN = _child_probabilities()


def draw_dyck_words(generator: np.random.Generator, words: int, length: int) -> Integers:
    """Draw words of balanced brackets [words, length] of 0 (open) and 1 (close).

    Raises:
        ValueError: if the length is odd or negative.
    """
    if length < 0 or length % 2:
        raise ValueError(f"length={length}; expected an even number, since brackets come in pairs")
    pairs = length // 2
    counts = _draw_child_counts(generator, words, pairs)
    found = np.empty((words, length), dtype=np.int64)
    for row in range(words):
        children = generator.permutation(np.repeat(np.arange(_MOST_CHILDREN + 1), counts[row]))
        # The sum of `children - 1` is -1, so one rotation goes below zero at its very end only (the cycle lemma).
        start = int((children - 1).cumsum().argmin()) + 1
        found[row] = _word_of_tree(np.roll(children, -start).tolist())
    return found


def bracket_partners(word: list[int]) -> list[int]:
    """For each bracket of a word, the place where its pair opens."""
    partners, opened = [], []
    for place, bracket in enumerate(word):
        if bracket == OPEN:
            opened.append(place)
            partners.append(place)
        else:
            partners.append(opened.pop())
    return partners


def _draw_child_counts(generator: np.random.Generator, trees: int, edges: int) -> Integers:
    """How many nodes have 0, 1, ... children, for each of some trees: [trees, children]."""
    found: list[Integers] = []
    missing = trees
    while missing:
        # One draw in about sqrt(2 pi edges) has as many children as there are nodes but the root.
        tries = 1 + int(missing * np.sqrt(2 * np.pi * (edges + 1)))
        counts = generator.multinomial(edges + 1, _CHILDREN, size=tries)
        fitting = counts[counts @ np.arange(_MOST_CHILDREN + 1) == edges][:missing]
        found.append(fitting)
        missing -= len(fitting)
    return np.concatenate(found)


def _word_of_tree(children: list[int]) -> list[int]:
    """Write the brackets of a tree that is given by the numbers of children in preorder, root first."""
    root, *others = children
    word, to_come = [], [root]
    for own in others:
        while to_come[-1] == 0:
            to_come.pop()
            word.append(CLOSE)
        to_come[-1] -= 1
        word.append(OPEN)
        to_come.append(own)
    return word + [CLOSE] * (len(to_come) - 1)
