"""Ctrl-C and SIGTERM as a request that the loop answers between two steps."""

import signal
import threading
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """While it is entered, signals are counted, and a second Ctrl-C raises `KeyboardInterrupt`.

    Outside the main thread, where signals cannot be caught, it does nothing.

    Args:
        at_once: whether a second Ctrl-C raises. Under `torchrun` it must not: one Ctrl-C comes twice there, from the
            terminal and from `torchrun`, which ends processes by itself that take too long.
    """

    def __init__(self, *, at_once: bool = True) -> None:
        self.requested, self.count = False, 0
        self._at_once = at_once
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignal":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested and self._at_once and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested, self.count = True, self.count + 1
