"""Broken files: seeded changes to the bytes of a sound one, as bad disks, bad copies and bad people make them."""

import random
import re
from collections.abc import Iterator

_HUGE = [
    bytes([255] * 8),
    (1 << 31).to_bytes(4, "little"),
    (1 << 62).to_bytes(8, "little"),
    b"9" * 400,
    b"-1",
    b"1e999",
]


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Change bytes in one to four places each: the same changes for the same seed, on every machine.

    Args:
        data: the content of a sound file.
        count: how many changed contents to give.
        seed: seed of the changes.
    """
    draw = random.Random(seed)
    changes = (_flip, _truncate, _splice, _repeat, _write_huge, _edit_digits)
    for _ in range(count):
        changed = data
        for _ in range(draw.randint(1, 4)):
            changed = draw.choice(changes)(changed, draw)
        yield changed


def _span(data: bytes, draw: random.Random, longest: int = 64) -> tuple[int, int]:
    first = draw.randint(0, len(data))
    return first, min(len(data), first + draw.randint(0, longest))


def _flip(data: bytes, draw: random.Random) -> bytes:
    """Turn one bit round, or a byte into any other."""
    if not data:
        return draw.randbytes(1)
    at = draw.randrange(len(data))
    new = data[at] ^ 1 << draw.randrange(8) if draw.random() < 0.5 else draw.randrange(256)
    return data[:at] + bytes([new]) + data[at + 1 :]


def _truncate(data: bytes, draw: random.Random) -> bytes:
    """Cut the end off, or the beginning."""
    at = draw.randint(0, len(data))
    return data[:at] if draw.random() < 0.8 else data[at:]


def _splice(data: bytes, draw: random.Random) -> bytes:
    """Put one part in the place of another, which may be empty."""
    (first, last), (start, end) = _span(data, draw), _span(data, draw)
    return data[:first] + data[start:end] + data[last:]


def _repeat(data: bytes, draw: random.Random) -> bytes:
    """Write a few bytes again and again."""
    first, last = _span(data, draw, longest=4)
    return data[:last] + data[first:last] * draw.choice((1, 100, 10_000)) + data[last:]


def _write_huge(data: bytes, draw: random.Random) -> bytes:
    """Write a length or a number over what stands there that no reader can take."""
    at, huge = draw.randint(0, len(data)), draw.choice(_HUGE)
    return data[:at] + huge + data[at + (len(huge) if draw.random() < 0.5 else 0) :]


def _edit_digits(data: bytes, draw: random.Random) -> bytes:
    """Change a number written in digits, where there is one, for another value or for one of another type."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not found:
        return _flip(data, draw)
    number = draw.choice(found)
    new = draw.choice((b"0", b"-1", b"1e308", b"1.5", b"null", b"true", b'"7"', b"[]", b"{}", b"NaN", b"9" * 400))
    return data[: number.start()] + new + data[number.end() :]
