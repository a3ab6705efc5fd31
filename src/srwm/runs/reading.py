"""Files that others may have put in their place: read whole, and never a pipe or a device, which have no end."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from srwm.errors import InputError

__all__ = ["open_file", "read_file"]


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; what goes wrong while it is read becomes a sentence that names it.

    Raises:
        InputError: if it is not there, cannot be read, or is something else than a file.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{path} is not a file but a pipe, a socket or a device; expected a file")
            yield file
    except IsADirectoryError as error:
        raise InputError(f"{path} is not a file but a folder; expected a file") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def read_file(path: Path, most_bytes: int) -> bytes:
    """Read a whole file that is not larger than it may be.

    Raises:
        InputError: if it is not there, cannot be read, is no file, or is larger.
    """
    with open_file(path) as file:
        # One byte more than is taken, whatever the system says of the size: files under /proc have none.
        is_larger = os.fstat(file.fileno()).st_size > most_bytes
        data = b"" if is_larger else file.read(most_bytes + 1)
    if is_larger or len(data) > most_bytes:
        raise InputError(f"{path} is too large; expected at most {most_bytes:,} bytes")
    return data


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting: a pipe would wait for its other end before it could be told from a file."""
    return os.open(path, flags | os.O_NONBLOCK)
