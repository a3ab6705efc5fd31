"""Says so when compiling takes so long that one would wonder."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

_log = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""Seconds of compiling, over the whole process, after which it is said."""

_spent_s = 0.0
_is_said = False


@contextlib.contextmanager
def said_when_slow(name: str) -> Iterator[None]:
    """Log a warning, once in a process, while what is done here is still going on after `PATIENCE_S` seconds in all."""
    global _spent_s
    timer = threading.Timer(max(0.0, PATIENCE_S - _spent_s), _say)
    timer.daemon = True
    timer.start()
    start = time.perf_counter()
    try:
        yield
    finally:
        timer.cancel()
        seconds = time.perf_counter() - start
        _spent_s += seconds
    _log.info("CPU kernel %s made ready in %.2f s", name, seconds)


def _say() -> None:
    global _is_said
    if not _is_said:
        _is_said = True
        _log.warning(
            "srwm is compiling its CPU kernels for this machine, each at its first use: some seconds, once. "
            "They are kept on disk."
        )
