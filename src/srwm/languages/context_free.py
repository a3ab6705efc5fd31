"""Tasks that take counting without bound: a^n b^n, a^n b^n c^n, and brackets."""

import torch
from torch import Tensor

from srwm.data.random import random_integers

from .dyck_words import OPEN, bracket_partners, draw_dyck_words
from .tasks import Task, draw_symbols, split_keys


def counters(name: str, letters: str) -> Task:
    """As many of each letter, one letter after the other: a^n b^n for "ab"; is what was read such a word?"""

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        place = torch.arange(longest, device=keys.device)
        each = (length // len(letters))[..., None]
        return (place // each).clamp(max=len(letters) - 1), (place == length[..., None] - 1).long()

    title = f"{' '.join(f'{letter}^n' for letter in letters)}: is this a whole word?"
    return Task(name, title, tuple(letters), 2, draw, multiple=len(letters))


def dyck_1() -> Task:
    """Balanced brackets of one kind; is every bracket closed?"""

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        words = _words(keys, length, longest)
        return words, (_depths(words, OPEN) == 0).long()

    return Task("dyck-1", "Dyck-1: is every bracket closed?", ("(", ")"), 2, draw, multiple=2)


def shuffle_2() -> Task:
    """Two kinds of brackets, each balanced, in any order; is every bracket closed?

    Drawn as the paper's data are: one word of balanced brackets, each pair of which is of either kind.
    """

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        word_key, kind_key = split_keys(keys, 2)
        words = _words(word_key, length, longest)
        # What stands behind a word is made whole, too, so that every bracket has a partner.
        place = torch.arange(longest, device=keys.device)
        words = torch.where(place < length[..., None], words, place % 2)
        kinds = draw_symbols(kind_key, 2, longest).gather(-1, bracket_partners(words))
        symbols = words + 2 * kinds
        return symbols, ((_depths(symbols, 0) == 0) & (_depths(symbols, 2) == 0)).long()

    return Task("shuffle-2", "Shuffle-2: is every bracket of both kinds closed?", tuple("()[]"), 2, draw, multiple=2)


def reset_dyck_1() -> Task:
    """Brackets of one kind and a reset, which makes all before it forgotten; is a bracket open since the last reset?

    Drawn as the paper's data are: the beginning of a word of balanced brackets, a reset, a whole word.
    """

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        cut_key, word_key, reset_key, whole_key = split_keys(keys, 4)
        reset = random_integers(reset_key, length[..., None])[..., 0]
        reset = reset - (length - 1 - reset) % 2  # what follows is a whole word
        reset = torch.where(reset < 0, reset + 2, reset)
        # The word that is cut short is up to twice as long as what is kept of it.
        whole = reset + random_integers(whole_key, reset[..., None] + 1)[..., 0]
        cut = draw_dyck_words(cut_key, (whole + 1) // 2, longest)[..., :longest]
        word = _words(word_key, length - 1 - reset, longest)
        place, at = torch.arange(longest, device=keys.device), reset[..., None]
        behind = word.gather(-1, (place - at - 1).clamp(min=0))
        symbols = torch.where(place < at, cut, behind)
        depth = (1 - 2 * symbols).masked_fill(place == at, 0).cumsum(dim=-1)
        depth = torch.where(place < at, depth, depth - depth.gather(-1, at))
        return symbols.masked_fill(place == at, _RESET), (depth > 0).long()

    title = "reset Dyck-1: is a bracket open since the last reset?"
    return Task("reset-dyck-1", title, ("(", ")", "#"), 2, draw)


_RESET = 2


def context_free_tasks() -> list[Task]:
    """All of them."""
    return [counters("anbn", "ab"), counters("anbncn", "abc"), shuffle_2(), dyck_1(), reset_dyck_1()]


def _words(keys: Tensor, length: Tensor, longest: int) -> Tensor:
    """Words of brackets, as wide as the longest sequence."""
    return draw_dyck_words(keys, length // 2, (longest + 1) // 2)[..., :longest]


def _depths(symbols: Tensor, opening: int) -> Tensor:
    """How many brackets of a kind are open after each position; the closing one has the next number."""
    return ((symbols == opening).long() - (symbols == opening + 1).long()).cumsum(dim=-1)
