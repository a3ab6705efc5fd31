"""Runs a kernel on as many threads as PyTorch would use.

Numba's own threads abort the process when two Python threads enter them at once, and do not survive a fork. Here a
short loop runs on the threads of PyTorch itself, where these are OpenMP's: they stay awake for a while after each loop,
so they begin at once. A long loop runs on threads of Python's, which it need not wait for if they wake up late; so does
a short one where there is no OpenMP, and after a fork, which OpenMP's threads do not survive. Each thread enters the
loop once and there takes one share of the heads after another (`next_share` in `shares.py`), without the interpreter.
"""

import atexit
import ctypes
import functools
import os
import threading
from array import array
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import numpy as np
import torch
from torch import Tensor

from .kernel import Counts, Entry, Kernel
from .shares import DONE
from .simd import BLOCK_BYTES

MIN_WORK = 1 << 19
"""Multiplications below which one thread is done before another has woken up."""

LONG_WORK = 1 << 24
"""Multiplications from which on the time to wake a thread does not matter."""

SHARES = 16
"""Shares of the heads for each thread: one that wakes up late, or is interrupted, takes fewer of them."""

Shapes = tuple[tuple[int, int], ...]


def over_heads(
    kernel: Kernel,
    heads: int,
    work: int,
    sizes: tuple[int, ...],
    scratch: Shapes,
    tables: Sequence[Tensor | None],
) -> None:
    """Run a kernel, on several threads if it is worth it.

    Args:
        kernel: what is done for one head; it writes only what belongs to that head.
        heads: how many there are, over the whole batch.
        work: about how many multiplications all of it takes.
        sizes: handed on.
        scratch: shapes of the matrices that each thread needs for itself; the kernel is given pointers to them.
        tables: contiguous tensors, the first of the dtype that is computed with; the kernel is given pointers to them,
            which lead nowhere for None.
    """
    assert tables[0] is not None
    itemsize = tables[0].itemsize
    entry = kernel.entry(itemsize, Counts(len(sizes), len(scratch), len(tables)))
    threads = min(torch.get_num_threads(), heads, 1 + work // MIN_WORK)
    shares = 1 if threads == 1 else min(heads, SHARES * threads)
    places, size = _layout(scratch, itemsize)
    addresses = [0 if each is None else each.data_ptr() for each in tables]
    counters = (0,) * (DONE + 1)
    told = array("q", (*counters, shares, threads, heads, _scratch(size * threads), size, *sizes, *places, *addresses))
    start, _ = told.buffer_info()
    if threads == 1:
        entry.call(start)
    elif work < LONG_WORK and _on_openmp is not None:
        # Asking for fewer threads than PyTorch does would end the others.
        _on_openmp(entry.address, start, 0, 0)
    else:
        call = _Call(entry, told, start, shares, (tables, _own.memory))
        try:
            _helpers.assign(call, threads - 1)
            call.run()
            call.wait()
        except BaseException:
            # After an interrupt others may still be at work: their scratch memory is left to them.
            _own.size = -1
            raise


def _find_openmp() -> Callable[[int, int, int, int], None] | None:
    """OpenMP's own function that has all threads call another one; None if PyTorch has brought none along."""
    function = getattr(ctypes.CDLL(None), "GOMP_parallel", None) if torch.backends.openmp.is_available() else None
    if function is not None:
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        function.restype = None
    return function


_on_openmp = _find_openmp()


class _Call:
    """One call of a loop on threads of Python's, which may come when it is over.

    It holds on to what they work with until the last of them has left.
    """

    def __init__(self, entry: Entry, told: Sequence[int], address: int, shares: int, memory: object) -> None:
        self.entry, self.told, self.address, self.shares, self.memory = entry, told, address, shares, memory
        self.problem: BaseException | None = None
        self.done = threading.Event()

    def run(self) -> None:
        """Take part, until no share is left."""
        self.entry.call(self.address)

    def help(self) -> None:
        """Take part in a thread that nobody waits for by itself."""
        try:
            self.run()
        except BaseException as problem:
            self.problem = problem
        if self.problem or self._is_done():
            self.done.set()

    def wait(self) -> None:
        """Wait for the shares that others have taken."""
        if not self._is_done():
            self.done.wait()
        if self.problem:
            raise self.problem

    def _is_done(self) -> bool:
        return self.told[DONE] == self.shares


class _Helpers:
    """Threads that wait for calls."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.starting = threading.Lock()

    def assign(self, call: _Call, count: int) -> None:
        """Have `count` threads take part in a call."""
        with self.starting:
            while len(self.threads) < count:
                name = f"srwm-{len(self.threads) + 1}"
                self.threads.append(threading.Thread(target=self._wait, name=name, daemon=True))
                self.threads[-1].start()
        for _ in range(count):
            self.calls.put(call)

    def stop(self) -> None:
        """End the threads, and wait until they have left."""
        with self.starting:
            for _ in self.threads:
                self.calls.put(None)
            for thread in self.threads:
                thread.join()
            self.threads.clear()

    def _wait(self) -> None:
        while call := self.calls.get():
            call.help()
            # What it holds on to is not kept until the next call comes.
            del call


_helpers = _Helpers()


def _forget_threads() -> None:
    global _helpers, _on_openmp
    _helpers, _on_openmp = _Helpers(), None


# Threads do not survive a fork; the child starts its own.
os.register_at_fork(after_in_child=_forget_threads)


def _stop_threads() -> None:
    _helpers.stop()


# A thread that came late may be the one that frees a call's tensors. PyTorch frees them without the interpreter, and
# aborts the process if that is being shut down meanwhile.
atexit.register(_stop_threads)

_own = threading.local()


def _scratch(size: int) -> int:
    """The address of memory for the calls that this thread makes, which is kept for its next call."""
    if getattr(_own, "size", -1) < size:
        _own.memory = np.empty(size + BLOCK_BYTES, np.uint8)
        _own.start = -(-_own.memory.ctypes.data // BLOCK_BYTES) * BLOCK_BYTES
        _own.size = size
    start: int = _own.start
    return start


@functools.lru_cache
def _layout(shapes: Shapes, itemsize: int) -> tuple[tuple[int, ...], int]:
    """Where matrices with padded rows begin when they lie one after another, and the size of all, in bytes."""
    # Python's integers: what is cached may have been asked for first with those of NumPy, which equal them.
    sizes = [int(rows) * -(-int(columns) * itemsize // BLOCK_BYTES) * BLOCK_BYTES for rows, columns in shapes]
    return tuple(sum(sizes[:i]) for i in range(len(sizes))), sum(sizes)
