"""Words of balanced brackets, against the grammar that they are drawn from."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest

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


@pytest.mark.parametrize("length", [2, 4, 6, 8])
def test_words_come_as_often_as_the_grammar_draws_them(length):
    words = {"".join(letters): probability("".join(letters)) for letters in product("()", repeat=length)}
    whole = sum(words.values())
    expected = {word: share / whole for word, share in words.items() if share}
    assert len(expected) == {2: 1, 4: 2, 6: 5, 8: 14}[length]
    number = 20_000
    found = Counter(
        "".join("()"[bracket] for bracket in word)
        for word in draw_dyck_words(np.random.default_rng(0), number, length).tolist()
    )
    assert set(found) <= set(expected)
    # Four standard deviations.
    for word, share in expected.items():
        assert abs(found[word] / number - share) < 4 * (share * (1 - share) / number) ** 0.5 + 1e-12, word


def test_long_words_are_balanced():
    words = draw_dyck_words(np.random.default_rng(1), 20, 3000)
    depths = np.cumsum(1 - 2 * words, axis=1)
    assert (depths >= 0).all()
    assert (depths[:, -1] == 0).all()
    assert len({tuple(word) for word in words.tolist()}) == 20


def test_an_empty_word_is_a_word():
    assert draw_dyck_words(np.random.default_rng(0), 3, 0).shape == (3, 0)


def test_brackets_come_in_pairs():
    with pytest.raises(ValueError, match="length=3; expected an even number"):
        draw_dyck_words(np.random.default_rng(0), 1, 3)


def test_partners_are_where_each_pair_opens():
    assert bracket_partners([0, 0, 1, 1, 0, 1]) == [0, 1, 1, 0, 4, 4]
