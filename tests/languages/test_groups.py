"""Groups by their tables."""

import numpy as np
import pytest
import torch

from srwm.languages import alternating_group, group_product, symmetric_group
from srwm.languages.groups import check_group


def cyclic(size):
    return np.add.outer(np.arange(size), np.arange(size)) % size


@pytest.mark.parametrize(
    ("table", "size", "commutes"),
    [
        (symmetric_group(2), 2, True),
        (symmetric_group(3), 6, False),
        (alternating_group(3), 3, True),
        (alternating_group(5), 60, False),
        (symmetric_group(5), 120, False),
    ],
)
def test_the_tables_are_groups_of_the_right_size(table, size, commutes):
    check_group(table)
    assert table.shape == (size, size)
    assert bool((table == table.T).all()) is commutes


def test_a_group_of_ones_own_is_a_task():
    symbols, products = group_product("c4", cyclic(4)).draw(torch.arange(3), torch.full((3,), 5), 5)
    assert torch.equal(products, symbols.cumsum(dim=1) % 4)


NO_INVERSE = np.array([[0, 1], [1, 1]])
LOOP = np.array([[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]])
"""A Latin square with an identity and inverses that is not associative."""


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (np.zeros((2, 3), int), "expected a square table"),
        (np.zeros((2, 2)), "expected a square table of whole numbers, got float64"),
        (np.array([[0, 2], [1, 0]]), "expected products from 0 to 1, got 0 to 2"),
        (cyclic(3)[[1, 0, 2]], "expected element 0 to be the identity"),
        (LOOP, "it fails for a = 1"),
        (NO_INVERSE, "expected an inverse of each element"),
    ],
)
def test_what_is_no_group_gets_a_sentence(table, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_group(table)
