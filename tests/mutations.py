"""Broken files, made of whole ones: the same ones for the same seed, everywhere."""

import random
import re
from collections.abc import Iterator

_HUGE = (0, 1, 0x7F, 0xFF, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
_NUMBERS = (b"0", b"-1", b"1e5", b"1e999", b"NaN", b"-Infinity", b"true", b"null", b'"7"', b"[1]", b"1.5", b"100000000")
_NUMBERS += (b"1099511627776", b"9223372036854775807", b"9223372036854775808", b"9" * 400, b"[" * 70 + b"]" * 70)


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Give `count` broken versions of some bytes.

    Each has one to three faults: flipped bits, a part cut off, left out, doubled or put elsewhere, random bytes, a
    length field of 2, 4 or 8 bytes that says something huge, and, where there are digits as in JSON, a number that
    became another one or another value.

    Args:
        data: a whole file.
        count: how many versions.
        seed: which ones.
    """
    draw = random.Random(seed)
    for _ in range(count):
        made = data
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            made = draw.choice(_FAULTS)(made, draw)
        yield made


def _flip(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _splice(data: bytes, draw: random.Random) -> bytes:
    """Leave out a part, double it, or put it elsewhere."""
    first, last = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    part, place = data[first:last], draw.randrange(len(data) + 1)
    rest = data[:first] + data[last:]
    return draw.choice((rest, data[:last] + part + data[last:], rest[:place] + part + rest[place:]))


def _insert(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + draw.randbytes(draw.randrange(1, 17)) + data[place:]


def _overwrite_length(data: bytes, draw: random.Random) -> bytes:
    """Let a number of some bytes say another one; the first bytes, where lengths often stand, most often."""
    size = draw.choice((2, 4, 8))
    if len(data) < size:
        return data
    place = draw.choice((0, 0, draw.randrange(min(64, len(data) - size + 1)), draw.randrange(len(data) - size + 1)))
    place = min(place, len(data) - size)
    number = draw.choice(_HUGE) % 2 ** (8 * size)
    return data[:place] + number.to_bytes(size, draw.choice(("little", "big"))) + data[place + size :]


def _edit_number(data: bytes, draw: random.Random) -> bytes:
    """Put another number or value in the place of one, as it stands in JSON."""
    # Beyond the start of a large file there are seldom digits that mean a number.
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data[:50_000]))
    if not found:
        return _flip(data, draw)
    match = draw.choice(found)
    near = str(int(draw.choice((-1, 1, 2, 10))) + int(float(match[0][:15]))).encode()
    return data[: match.start()] + draw.choice((*_NUMBERS, near, near, near)) + data[match.end() :]


_FAULTS = (_flip, _flip, _truncate, _splice, _insert, _overwrite_length, _edit_number, _edit_number)
