"""Damaged copies of a file's bytes, as disks, networks and adversaries make them."""

import contextlib
import faulthandler
import random
import re
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

_EDGES = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
"""Numbers at which sizes, counts and signs go wrong."""

_WORDS = (
    *(b"0", b"9", b"-1", b"7" * 11, b"9" * 20, b"9" * 400, b"1e5", b"1e9", b"1e999", b"1.5", b"0x", b" "),
    *(b"100000000", b"1099511627776", b"9223372036854775808"),
    *(b"NaN", b"-Infinity", b"true", b"null", b'"7"', b"[1]", b"{}", b"[" * 70 + b"]" * 70),
)
"""What stands in the place of a number in digits, as in JSON."""


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Give damaged copies of `data`: the same ones for the same arguments, on every machine.

    Args:
        data: the bytes of a sound file; at least one.
        count: how many copies.
        seed: which ones.
    """
    rng = random.Random(seed)
    for _ in range(count):
        damaged = data
        # Most damage is in one place; what stops a reader there would hide a second.
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            damaged = rng.choice(_DAMAGES)(damaged or b"\0", rng)
        yield damaged


@contextlib.contextmanager
def bounded(*, memory_bytes: int = 2**30, time_s: float = 120.0) -> Iterator[None]:
    """Let the block ask for no more than so much more memory, and end the process, with a trace, if it hangs.

    Args:
        memory_bytes: how much; beyond it, memory that is asked for is refused, whether it would be used or not.
        time_s: how long the block may take.
    """
    sizes = Path("/proc/self/statm")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    faulthandler.dump_traceback_later(time_s, exit=True)
    try:
        # Where a process cannot see its own size, the limit cannot be set.
        if sizes.exists():
            pages = int(sizes.read_text().split()[0])
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory_bytes, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        faulthandler.cancel_dump_traceback_later()


def _flip_bits(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def _change_bytes(data: bytes, rng: random.Random) -> bytes:
    place = _place(data, rng)
    return data[:place] + rng.randbytes(rng.randint(1, 4)) + data[place + rng.randint(0, 4) :]


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: _place(data, rng)]


def _cut_out(data: bytes, rng: random.Random) -> bytes:
    place = _place(data, rng)
    return data[:place] + data[place + rng.randint(1, max(1, len(data) // 4)) :]


def _splice(data: bytes, rng: random.Random) -> bytes:
    """Copy a piece to another place: over what is there, or in between."""
    start, place = _place(data, rng), _place(data, rng)
    piece = data[start : start + rng.randint(1, max(1, len(data) // 4))]
    return data[:place] + piece + data[place + rng.choice((0, len(piece))) :]


def _set_length(data: bytes, rng: random.Random) -> bytes:
    """Write a number as a field of 1, 2, 4 or 8 bytes: one at an edge, or a little off the one that is there."""
    size, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
    place = _place(data, rng)
    there = int.from_bytes(data[place : place + size], order)
    number = rng.choice((rng.choice(_EDGES), there + rng.choice((-1, 1)), there * 2)) % 256**size
    return data[:place] + number.to_bytes(size, order) + data[place + size :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    """Write a few bytes again and again."""
    place = _place(data, rng)
    return data[:place] + data[place : place + rng.randint(1, 4)] * rng.choice((1, 100, 10_000)) + data[place:]


def _set_number(data: bytes, rng: random.Random) -> bytes:
    """Change a number that stands there in digits, such as a shape, an octal size or a value in JSON."""
    # Beyond the start of a large file there are seldom digits that mean a number.
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data[:65_536]))
    if not found:
        return _set_length(data, rng)
    number = rng.choice(found)
    near = str(rng.choice((-1, 1, 2, 10)) + int(float(number[0][:15]))).encode()
    new = rng.choice((rng.choice(_WORDS), near))
    # As many digits as before where lengths count, or as many as it has.
    last = number.start() + len(new) if rng.random() < 0.3 else number.end()
    return data[: number.start()] + new + data[last:]


def _place(data: bytes, rng: random.Random) -> int:
    """Choose a place: headers and directories stand at the beginning and at the end."""
    near = min(len(data), 64)
    return rng.choice((rng.randrange(len(data)), rng.randrange(near), len(data) - 1 - rng.randrange(near)))


_DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip_bits,
    _change_bytes,
    _truncate,
    _cut_out,
    _splice,
    _set_length,
    _set_length,
    _repeat,
    _set_number,
    _set_number,
)
