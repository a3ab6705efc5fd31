"""A lock between processes that ends with its holder, however that ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from srwm.errors import RunError

if os.name == "nt":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def file_lock(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock while the block runs; the system lets go of it when the process ends, even by a kill.

    Args:
        path: the lock's file; it stays when the block ends, since to remove it could give two processes the lock.
        busy: what it means that another process holds the lock.

    Raises:
        RunError: another process holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            _try_lock(descriptor)
        except OSError as error:
            raise RunError(f"{busy}; wait until it has ended, then run the command again") from error
        yield
    finally:
        os.close(descriptor)
