"""One sweep at a time in a folder."""

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from srwm.errors import RunError
from srwm.runs.atomic import failures_as_sentences

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def sweep_lock(out: Path) -> Iterator[None]:
    """Keep other sweeps out of a folder while the block runs; the lock goes with the process, however it ends.

    The runs do not inherit it: a sweep that goes on after a kill waits for those that are still alive one by one.

    Raises:
        RunError: if another process holds it, or the folder cannot be opened.
    """
    with failures_as_sentences(out):
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"another sweep is running in {out}; wait until it has ended, or choose another --out"
            ) from None
        except OSError as error:
            _log.warning("%s cannot be locked (%s); see that no other sweep runs in it", out, error.strerror)
        yield
    finally:
        os.close(descriptor)
