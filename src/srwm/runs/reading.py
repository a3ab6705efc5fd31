"""Opens files and nothing else that a path may lead to: a pipe may keep a reader waiting, a device has no end."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from srwm.errors import InputError

__all__ = ["open_file", "read_file"]

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
_PIECE_BYTES = 1 << 20


@contextmanager
def open_file(path: Path, what: str | None = None) -> Iterator[BinaryIO]:
    """Open a file to read its bytes; what the system says while it is read becomes a sentence that names it.

    Args:
        path: the file; links to files are followed.
        what: how a sentence names it; its path when None.

    Raises:
        InputError: if there is none, it cannot be read, or it is a pipe, a device, a socket or a folder.
    """
    what = what or str(path)
    with _opened(path, what) as file:
        _check_kind(os.fstat(file.fileno()), what)
        try:
            yield file
        except OSError as error:
            raise _unreadable(what, error) from error
        except MemoryError as error:
            raise InputError(f"{what} is too large for the memory of this machine") from error


def read_file(path: Path, most_bytes: int, what: str | None = None) -> bytes:
    """Read a whole file; one that is larger than it may be is refused before it is read.

    Args:
        path: the file; links to files are followed.
        most_bytes: how many bytes it may have.
        what: how a sentence names it; its path when None.

    Raises:
        InputError: as `open_file`, or if it is larger.
    """
    what = what or str(path)
    with open_file(path, what) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise InputError(f"{what} has {size:,} bytes; at most {most_bytes:,} are read")
        data = file.read(size + 1)  # `read` asks for as much memory as it is told to.
        if len(data) > size:
            # It grows, or lies under /proc, where files have no size.
            data = _read_on(file, data, most_bytes)
    if len(data) > most_bytes:
        raise InputError(f"{what} has more than {most_bytes:,} bytes; at most so many are read")
    return data


def _opened(path: Path, what: str) -> BinaryIO:
    try:
        # Looked at first, because to open a device may already do something.
        _check_kind(os.stat(path), what)
        return os.fdopen(os.open(path, _OPTIONS), "rb")
    except InputError:
        raise
    except FileNotFoundError as error:
        problem = "is a link to what does not exist" if path.is_symlink() else "does not exist"
        raise InputError(f"{what} {problem}") from error
    except OSError as error:
        raise _unreadable(what, error) from error
    except ValueError as error:
        raise InputError(f"{what!r} cannot be the name of a file: {error}") from error


def _read_on(file: BinaryIO, begun: bytes, most_bytes: int) -> bytes:
    """Read what follows, up to the end or to more than is taken."""
    pieces, num_bytes = [begun], len(begun)
    while num_bytes <= most_bytes and (piece := file.read(_PIECE_BYTES)):
        pieces.append(piece)
        num_bytes += len(piece)
    return b"".join(pieces)


def _check_kind(status: os.stat_result, what: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "no file")
        raise InputError(f"{what} is {kind}; expected a file")


def _unreadable(what: str, error: OSError) -> InputError:
    return InputError(f"{what} cannot be read: {error.strerror or error}")
