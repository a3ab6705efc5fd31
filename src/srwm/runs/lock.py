"""A lock between processes that ends with its holder, however that ends."""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from srwm.errors import InputError, RunError

from .atomic import failures_as_sentences

_log = logging.getLogger(__name__)

if os.name == "nt":
    import msvcrt

    _BUSY: type[OSError] = OSError

    def try_lock(descriptor: int) -> None:
        """Take the lock of an open file, or raise an error of the system at once."""
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]

else:
    import fcntl

    _BUSY = BlockingIOError

    def try_lock(descriptor: int) -> None:
        """Take the lock of an open file or folder, or raise an error of the system at once."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def hold_lock(path: Path, busy: InputError | RunError) -> Iterator[None]:
    """Hold a lock while the block runs; the system lets go of it when the process ends, even by a kill.

    Processes that are started meanwhile do not inherit it. Where a file system has no locks, the log says so.

    Args:
        path: a folder; or the lock's file, which stays when the block ends: to remove it could give two processes the
            lock.
        busy: raised if another process holds it.

    Raises:
        RunError: if the folder cannot be opened, or the file cannot be made.
    """
    with failures_as_sentences(path):
        is_folder = path.is_dir()
        descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            try_lock(descriptor)
        except _BUSY:
            raise busy from None
        except OSError as error:
            _log.warning("%s cannot be locked (%s); see that no other process works there", path, error.strerror)
        yield
    finally:
        os.close(descriptor)
