"""Files that are there whole or not at all, also after a crash or a full disk."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from srwm.errors import InputError, RunError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` into the file `path`: readers see the old content or the new, never half of it.

    The bytes go to a temporary file in the same folder, reach the disk, and then take the name. One process at a time
    may write a path.

    Raises:
        RunError: if it cannot be written; the old file is then as it was, and no temporary one is left.
    """
    with written_whole(path) as temporary:
        write_synced(temporary, data)
    with failures_as_sentences(path):
        sync_folder(path.parent)


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary file to write, beside `path`; at the end it takes that name.

    Raises:
        RunError: if it cannot be written. After this or any other error the old file is as it was, and no temporary one
            is left.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with failures_as_sentences(path):
        if path.exists() and not path.is_file():
            # A device, such as /dev/null, would be replaced for good.
            raise RunError(f"{path} cannot be written: it is not a file; expected the name of one, or a free name")
        try:
            yield temporary
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_synced(path: Path, data: bytes) -> None:
    """Write a file and wait until the disk has it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte; the system may take them in several parts."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def failures_as_sentences(path: Path) -> Iterator[None]:
    """Turn the system's errors on writing `path` into a `RunError` that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            advice = "free some space, then try again (a run goes on with --resume); what was saved before is intact"
            raise RunError(f"{path} cannot be written: the disk is full ({error.strerror}); {advice}") from error
        raise RunError(f"{path} cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def unreadable_as_sentence(path: Path) -> Iterator[None]:
    """Turn the system's errors on looking at what a user named into an `InputError`: a name too long, a folder closed.

    That there is nothing of a name is no such error: whoever looks for it says so.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
