"""What is the right answer after a text, found as naively as can be: by definition, from its beginning each time."""

import re
from itertools import permutations


def _is_balanced(text, brackets="()"):
    """Take out pairs that stand side by side until nothing changes."""
    text = "".join(letter for letter in text if letter in brackets)
    while brackets in text:
        text = text.replace(brackets, "")
    return text == ""


def _is_equal_runs(text, letters):
    return any(text == "".join(letter * n for letter in letters) for n in range(1, len(text) + 1))


def _even_permutations(degree):
    """Products of two transpositions, again and again, in lexicographic order."""
    swaps = [(i, j) for i in range(degree) for j in range(i)]

    def swapped(each, i, j):
        new = list(each)
        new[i], new[j] = new[j], new[i]
        return tuple(new)

    found = {tuple(range(degree))}
    while True:
        more = {swapped(swapped(each, *one), *two) for each in found for one in swaps for two in swaps} | found
        if more == found:
            return sorted(found)
        found = more


def _moved(elements, numbers):
    """Move things about, one permutation after the other, and say which single one does the same."""
    things = list(range(len(elements[0])))
    for number in numbers:
        # What lies at place i goes where the permutation says of i.
        things = [elements[int(number)][thing] for thing in things]
    return elements.index(tuple(things))


def _ball(swaps, number):
    """Move cups about in a list, and look for the one with the ball."""
    cups = ["ball"] + [""] * (number - 1)
    for swap in swaps:
        one, other = (int(place) - 1 for place in swap.split("-"))
        cups[one], cups[other] = cups[other], cups[one]
    return cups.index("ball")


def _recalled(word):
    """Play it through with a dictionary. The answers are 1 to 8, "nothing asked" and "none yet"."""
    known = {}
    for symbol in word[:-1]:
        if "=" in symbol:
            key, value = symbol.split("=")
            known[key] = int(value) - 1
    asked = word[-1]
    return known.get(asked[0], 9) if asked.endswith("?") else 8


S3, A5, S5 = sorted(permutations(range(3))), _even_permutations(5), sorted(permutations(range(5)))

RECOGNISERS = {
    "parity": lambda word: word.count("1") % 2,
    "aa-star": lambda word: bool(re.fullmatch("(aa)*", "".join(word))),
    "abab-star": lambda word: bool(re.fullmatch("(abab)*", "".join(word))),
    "anbn": lambda word: _is_equal_runs("".join(word), "ab"),
    "anbncn": lambda word: _is_equal_runs("".join(word), "abc"),
    "dyck-1": lambda word: _is_balanced("".join(word)),
    "shuffle-2": lambda word: _is_balanced("".join(word)) and _is_balanced("".join(word), "[]"),
    "reset-dyck-1": lambda word: not _is_balanced("".join(word).rpartition("#")[2]),
    "sum-mod-3": lambda word: sum(map(int, word)) % 3,
    "sum-mod-7": lambda word: sum(map(int, word)) % 7,
    "s3": lambda word: _moved(S3, word),
    "a5": lambda word: _moved(A5, word),
    "s5": lambda word: _moved(S5, word),
    "cups-3": lambda word: _ball(word, 3),
    "cups-5": lambda word: _ball(word, 5),
    "recall": _recalled,
}
"""For each task, from the symbols of a beginning to the right answer after it."""
