"""Bounds on what the server does at once: what goes beyond is refused with a sentence, and never piles up."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from srwm.errors import RunError

T = TypeVar("T")


class Busy(RunError):
    """What is asked for cannot be done now, but it can be later."""


class Slots:
    """A bounded number of things at a time.

    Args:
        number: how many.
        what: how a sentence names them.
    """

    def __init__(self, number: int, what: str) -> None:
        self._number, self._what = number, what
        self._taken = 0

    @contextmanager
    def take(self) -> Iterator[None]:
        """Hold one of them.

        Raises:
            Busy: if all are taken.
        """
        if self._taken >= self._number:
            raise Busy(f"the server is busy with {self._number} {self._what}, its most; try again in a moment")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


class Worker:
    """One thread that computes in the order in which it is asked, while the server goes on answering others.

    Args:
        name: of the thread.
        slots: what may wait for it or run in it.
    """

    def __init__(self, name: str, slots: Slots) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"srwm-{name}")
        self._slots = slots

    async def run(self, compute: Callable[[], T]) -> T:
        """Compute something.

        Raises:
            Busy: if too much waits already.
        """
        with self._slots.take():
            return await asyncio.get_running_loop().run_in_executor(self._executor, compute)
