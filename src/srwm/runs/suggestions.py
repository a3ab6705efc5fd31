"""The right word beside a wrong one."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Say which of `words` is nearest, as the end of a sentence; nothing if none is near.

    Dotted names are also found by their last part: `hidden_size` finds `model.hidden_size`.
    """
    known = list(words)
    last_parts = {name.rpartition(".")[2]: name for name in reversed(known)}
    last = word.rpartition(".")[2]
    if last in last_parts:
        return f"; did you mean {last_parts[last]!r}?"
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    near = near or [last_parts[part] for part in difflib.get_close_matches(last, last_parts, n=1, cutoff=0.6)]
    return f"; did you mean {near[0]!r}?" if near else ""
