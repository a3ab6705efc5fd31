"""Words of balanced brackets, against the grammar that they are drawn from."""

from collections import Counter
from functools import cache
from itertools import product

import pytest
import torch

from srwm.data.random import stream_key
from srwm.languages.dyck_words import bracket_partners, draw_dyck_words

P, Q = 0.5, 0.25


@cache
def probability(word):
    """That the grammar S -> ( S ) | S S | nothing draws a word, by its definition.

    S S can give the word and nothing, in either order; the equation that says so is solved for the word.
    """
    empty = (1 - (1 - 4 * Q * (1 - P - Q)) ** 0.5) / (2 * Q)
    if word == "":
        return empty
    total = P * probability(word[1:-1]) if word[0] == "(" and word[-1] == ")" else 0.0
    total += Q * sum(probability(word[:cut]) * probability(word[cut:]) for cut in range(1, len(word)))
    return total / (1 - 2 * Q * empty)


def drawn(number, pairs, most_pairs=None, seed=0):
    keys = stream_key(seed, 0, torch.arange(number))
    return draw_dyck_words(keys, torch.full((number,), pairs), pairs if most_pairs is None else most_pairs)


@pytest.mark.parametrize("length", [2, 4, 6, 8])
def test_words_come_as_often_as_the_grammar_draws_them(length):
    words = {"".join(letters): probability("".join(letters)) for letters in product("()", repeat=length)}
    whole = sum(words.values())
    expected = {word: share / whole for word, share in words.items() if share}
    assert len(expected) == {2: 1, 4: 2, 6: 5, 8: 14}[length]
    number = 20_000
    found = Counter(
        "".join("()"[bracket] for bracket in word) for word in drawn(number, length // 2, 6)[:, :length].tolist()
    )
    assert set(found) <= set(expected)
    # Four standard deviations.
    for word, share in expected.items():
        assert abs(found[word] / number - share) < 4 * (share * (1 - share) / number) ** 0.5 + 1e-12, word


def test_words_of_different_lengths_are_drawn_together():
    pairs = torch.arange(40)
    words = draw_dyck_words(stream_key(0, 0, pairs), pairs, 39)
    depths = (1 - 2 * words).cumsum(dim=1)
    for length in range(1, 40):
        assert (depths[length, : 2 * length] >= 0).all()
        assert depths[length, 2 * length - 1] == 0


def test_long_words_are_balanced():
    words = drawn(20, 1500)
    depths = (1 - 2 * words).cumsum(dim=1)
    assert words.shape == (20, 3000)
    assert (depths >= 0).all()
    assert (depths[:, -1] == 0).all()
    assert len({tuple(word) for word in words.tolist()}) == 20


def test_an_empty_word_is_a_word():
    assert drawn(3, 0).shape == (3, 0)


def test_partners_are_where_each_pair_opens():
    words = torch.tensor([[0, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 1]])
    assert bracket_partners(words).tolist() == [[0, 1, 1, 0, 4, 4], [0, 0, 2, 3, 3, 2]]
