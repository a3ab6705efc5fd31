"""Opens files and nothing else that a path may lead to: a pipe may keep a reader waiting, a device has no end."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from srwm.errors import InputError

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# A pipe that takes the file's place after the first look must not keep `open` waiting. Windows has no such option, but
# needs to be told that bytes are meant.
_OPTIONS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_regular_file(path: Path, what: str | None = None) -> BinaryIO:
    """Open a file to read its bytes; links to files are followed.

    Args:
        path: the file.
        what: how a sentence names it; its path when None.

    Raises:
        InputError: there is none, it cannot be read, or it is a pipe, a device, a socket or a folder.
    """
    what = what or str(path)
    try:
        # Looked at first, because to open a device may already do something.
        _check(os.stat(path), what)
        file = os.fdopen(os.open(path, _OPTIONS), "rb")
    except FileNotFoundError as error:
        problem = "is a link to what does not exist" if path.is_symlink() else "does not exist"
        raise InputError(f"{what} {problem}") from error
    except OSError as error:
        raise InputError(f"{what} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{what!r} cannot be the name of a file: {error}") from error
    try:
        _check(os.fstat(file.fileno()), what)
    except InputError:
        file.close()
        raise
    return file


def read_regular_file(path: Path, max_bytes: int, what: str | None = None) -> bytes:
    """Read all bytes of a file; one with more than `max_bytes` is refused before it is read.

    Args:
        path: the file.
        max_bytes: how many bytes it may have.
        what: how a sentence names it; its path when None.

    Raises:
        InputError: as `open_regular_file`, or the file is too large.
    """
    what = what or str(path)
    with open_regular_file(path, what) as file:
        size = check_size(file, max_bytes, what)
        try:
            data = file.read(size + 1)  # `read` asks for as much memory as it is told to.
        except OSError as error:
            raise InputError(f"{what} cannot be read: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise InputError(f"{what} grows while it is read; expected a file of at most {max_bytes} bytes")
    return data


def check_size(file: BinaryIO, max_bytes: int, what: str) -> int:
    """Give a file's size, unless it is too large to be read.

    Raises:
        InputError: it has more than `max_bytes`.
    """
    size = os.fstat(file.fileno()).st_size
    if size > max_bytes:
        raise InputError(f"{what} has {size} bytes; at most {max_bytes} are read")
    return size


def _check(status: os.stat_result, what: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "no file")
        raise InputError(f"{what} is {kind}; expected a file")
