"""Runs a compiled loop over heads on as many threads as PyTorch would use.

Numba's own threads abort the process when two Python threads enter them at once, and do not survive a fork; these do
neither. The compiled loops release the interpreter, so Python's threads suffice, as long as they rarely need it: each
enters the loop once and there takes one share of the heads after another (`next_share` in `_loops.py`).
"""

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import numpy as np
import torch
from torch import Tensor

from ._simd import BLOCK_BYTES

MIN_WORK = 1 << 19
"""Multiplications below which one thread is done before another has woken up."""

SHARES = 16
"""Shares of the heads for each thread: one that wakes up late, or is interrupted, takes fewer of them."""

Shapes = tuple[tuple[int, int], ...]

_ZERO = {torch.float32: np.float32(0), torch.float64: np.float64(0)}


def over_heads(
    loop: Callable[..., None],
    heads: int,
    work: int,
    scratch: Shapes,
    sizes: tuple[int, ...],
    reset: Tensor | None,
    tables: Sequence[Tensor | None],
) -> None:
    """Call `loop(crew, scratch, zero, sizes, reset, tables)`, on several threads if it is worth it.

    Args:
        loop: compiled; takes shares of the heads from `crew`, and writes only what belongs to them.
        heads: how many there are, over the whole batch.
        work: about how many multiplications all of it takes.
        scratch: shapes of the matrices that each thread needs for itself; the loop is given their addresses.
        sizes: handed on.
        reset: whatever tells where the state is reset; the loop is given its address, or 0.
        tables: contiguous tensors of one dtype; the loop is given their addresses, or 0, and a zero of that dtype.
    """
    threads = min(torch.get_num_threads(), heads, 1 + work // MIN_WORK)
    call = _Call(loop, heads, 1 if threads == 1 else min(heads, SHARES * threads), scratch, sizes, reset, tables)
    if threads > 1:
        _helpers.assign(call, threads - 1)
    call.run(leads=True)
    call.wait()


def segments(reset: Tensor | None) -> Tensor | None:
    """For each step, the last reset at or before it, or -1: [b, t]."""
    if reset is None:
        return None
    return torch.where(reset, torch.arange(reset.shape[1]), -1).cummax(1).values


class _Call:
    """One call of a loop. It holds on to the tensors until the last thread has left."""

    def __init__(
        self,
        loop: Callable[..., None],
        heads: int,
        shares: int,
        scratch: Shapes,
        sizes: tuple[int, ...],
        reset: Tensor | None,
        tables: Sequence[Tensor | None],
    ) -> None:
        dtype = next(each.dtype for each in tables if each is not None)
        assert all(each is None or (each.dtype == dtype and each.is_contiguous()) for each in tables)
        self.loop, self.heads, self.shares = loop, heads, shares
        self.counters = (ctypes.c_int64 * 5)()
        self.layout = _layout(scratch, dtype.itemsize)
        self.tensors = reset, tables
        addresses = tuple([0 if each is None else each.data_ptr() for each in tables])
        self.arguments = _ZERO[dtype], sizes, 0 if reset is None else reset.data_ptr(), addresses
        self.problem: BaseException | None = None
        self.done = threading.Event()

    def run(self, leads: bool) -> None:
        """Take part, until no share is left."""
        crew = ctypes.addressof(self.counters), self.shares, int(leads), self.heads
        self.loop(crew, _scratch(*self.layout), *self.arguments)

    def help(self) -> None:
        """Take part in a thread that nobody waits for by itself."""
        try:
            self.run(leads=False)
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
        return self.counters[4] == self.shares


class _Helpers:
    """Threads that wait for calls."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call] = SimpleQueue()
        self.count = 0
        self.starting = threading.Lock()

    def assign(self, call: _Call, count: int) -> None:
        """Have `count` threads take part in a call."""
        with self.starting:
            while self.count < count:
                self.count += 1
                threading.Thread(target=self._wait, name=f"srwm-{self.count}", daemon=True).start()
        for _ in range(count):
            self.calls.put(call)

    def _wait(self) -> None:
        while True:
            self.calls.get().help()


_helpers = _Helpers()


def _forget_helpers() -> None:
    global _helpers
    _helpers = _Helpers()


# Threads do not survive a fork; the child starts its own.
os.register_at_fork(after_in_child=_forget_helpers)

_own = threading.local()


def _scratch(starts: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Addresses in memory of this thread's own, which is kept for its next call."""
    if getattr(_own, "size", -1) < size:
        _own.memory = np.empty(size + BLOCK_BYTES, np.uint8)
        _own.start = -(-_own.memory.ctypes.data // BLOCK_BYTES) * BLOCK_BYTES
        _own.size = size
    start = _own.start
    return tuple([start + each for each in starts])


@functools.lru_cache
def _layout(shapes: Shapes, itemsize: int) -> tuple[tuple[int, ...], int]:
    """Where matrices with padded rows begin when they lie one after another, and the size of all, in bytes."""
    sizes = [rows * -(-columns * itemsize // BLOCK_BYTES) * BLOCK_BYTES for rows, columns in shapes]
    return tuple(sum(sizes[:i]) for i in range(len(sizes))), sum(sizes)
