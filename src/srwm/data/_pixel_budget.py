"""How many pixels may be in memory at a time, whatever the number of threads that decode."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class PixelBudget:
    """A number of pixels that threads share; who would exceed it waits for the others.

    A thread takes pixels once at a time: two that each hold some and wait for more would wait for ever.
    """

    def __init__(self, pixels: int) -> None:
        self._left = pixels
        self._pixels = pixels
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, pixels: int) -> Iterator[None]:
        """Take pixels while the block runs; more than there ever are counts as all."""
        pixels = min(pixels, self._pixels)
        with self._changed:
            self._changed.wait_for(lambda: self._left >= pixels)
            self._left -= pixels
        try:
            yield
        finally:
            with self._changed:
                self._left += pixels
                self._changed.notify_all()
