"""Texts from files and servers, as a sentence or a line can have them."""

_MAX_LETTERS = 80


def shown(text: str) -> str:
    """Give the beginning of a text that may be long and damaged, with escapes if not all of it can be printed."""
    start = text[:_MAX_LETTERS] + ("..." if len(text) > _MAX_LETTERS else "")
    return start if start.isprintable() else ascii(start)
