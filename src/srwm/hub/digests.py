"""Digests of files, as git and the Hub have them, and one of several files together."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from srwm.errors import InputError

__all__ = ["digest_like", "joint_digest"]

_SHA1_DIGITS, _SHA256_DIGITS = 40, 64


def digest_like(path: Path, known: str) -> str:
    """Compute a file's digest of the kind that is known of it.

    Args:
        path: the file.
        known: what the Hub has on record: the SHA-256 of a large file, or the SHA-1 of a small one as git computes it.

    Raises:
        InputError: if it is neither.
    """
    with path.open("rb") as file:
        if len(known) == _SHA256_DIGITS:
            return hashlib.file_digest(file, "sha256").hexdigest()
        if len(known) == _SHA1_DIGITS:
            head = b"blob %d\0" % path.stat().st_size
            return hashlib.sha1(head + file.read(), usedforsecurity=False).hexdigest()
    raise InputError(f"{path.name} has the digest {known[:80]!r} on the Hub; expected one of 40 or 64 digits")


def joint_digest(paths: Iterable[Path]) -> str:
    """Give one SHA-256 for several files, whatever order they come in.

    It is that of what `sha256sum` prints of them, so `sha256sum model.json weights.safetensors | sha256sum` gives it.
    """
    lines = []
    for path in sorted(paths, key=lambda path: path.name):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()
