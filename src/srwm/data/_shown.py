"""Texts from files and servers, as a sentence or a line can have them."""


def shown(text: object, most: int = 200) -> str:
    """Give the beginning of a text that may be long and damaged, with escapes if not all of it can be printed.

    Args:
        text: the text, or an error whose words may quote a damaged file at length.
        most: how many of its letters are given.
    """
    text = str(text)
    start = text[:most] + ("..." if len(text) > most else "")
    return start if start.isprintable() else ascii(start)


def quoted(name: str, most: int = 200) -> str:
    """Give the beginning of a name in quotation marks, with escapes for what cannot be printed."""
    return repr(name[:most] + ("..." if len(name) > most else ""))
