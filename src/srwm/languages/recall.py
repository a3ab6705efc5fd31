"""Associative recall with distractors: the task that the delta rule was made for."""

import torch
from torch import Tensor

from .tasks import Task, draw_symbols, split_keys

_KEYS, _VALUES, _DISTRACTORS = 8, 8, 4


def recall() -> Task:
    """Values are put under keys, again and again; what was put under a key last?

    A third of the symbols puts a value under a key ("c=5"), a third asks for one ("c?"), and a third means nothing. The
    answer to a question is the value, or that there is none yet; to anything else, "nothing asked".
    """
    writes = [f"{letter}={value}" for letter in "abcdefgh" for value in range(1, _VALUES + 1)]
    questions = [f"{letter}?" for letter in "abcdefgh"]
    distractors = list("wxyz")
    nothing, none_yet = _VALUES, _VALUES + 1

    def draw(keys: Tensor, length: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        kind_key, key_key, value_key, other_key = split_keys(keys, 4)
        kind, key = draw_symbols(kind_key, 3, longest), draw_symbols(key_key, _KEYS, longest)
        value, other = draw_symbols(value_key, _VALUES, longest), draw_symbols(other_key, _DISTRACTORS, longest)
        place = torch.arange(longest, device=keys.device)
        targets = torch.full_like(kind, nothing)
        for each in range(_KEYS):
            is_write = (kind == 0) & (key == each)
            last = torch.where(is_write, place, -1).cummax(dim=-1).values
            found = torch.where(last < 0, none_yet, value.gather(-1, last.clamp(min=0)))
            targets = torch.where((kind == 1) & (key == each), found, targets)
        asked = torch.where(kind == 1, len(writes) + key, len(writes) + len(questions) + other)
        return torch.where(kind == 0, key * _VALUES + value, asked), targets

    title = "what was put under a key last, among distractors?"
    return Task("recall", title, (*writes, *questions, *distractors), _VALUES + 2, draw)
