"""Runs a compiled loop over heads on as many threads as PyTorch would use."""

import functools
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._simd import BLOCK_BYTES

MIN_WORK = 1 << 20
"""Multiplications below which one thread is done before another wakes up."""

SHARES = 4
"""Shares of the heads for each thread: one that wakes up late, or is interrupted, takes fewer of them."""

_ZERO = {torch.float32: np.float32(0), torch.float64: np.float64(0)}


class _Call:
    """A call of a loop: what it works on, and the shares of the heads that no thread has taken yet."""

    def __init__(
        self, loop: Callable[..., None], heads: int, shares: int, scratch: Any, arguments: Any, memory: Any
    ) -> None:
        self.loop, self.scratch, self.arguments = loop, scratch, arguments
        # The loop is given addresses. Should the caller be interrupted, this keeps what lies there for the others.
        self.memory = memory
        bounds = [heads * i // shares for i in range(shares + 1)]
        self.waiting = deque(itertools.pairwise(bounds))
        self.unfinished = shares
        self.counting = threading.Lock()
        self.finished = threading.Lock()
        self.finished.acquire()
        self.problem: BaseException | None = None

    def work(self) -> None:
        """Take shares until there are none."""
        _memory, scratch = _allocate(*self.scratch)
        while True:
            try:
                first, last = self.waiting.popleft()
            except IndexError:
                return
            try:
                self.loop(first, last, scratch, *self.arguments)
            except BaseException as problem:
                self.problem = problem
            with self.counting:
                self.unfinished -= 1
                if not self.unfinished:
                    self.finished.release()


class _Helpers:
    """Threads that wait for calls to help with."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call] = SimpleQueue()
        self.threads: list[threading.Thread] = []

    def join(self, call: _Call, count: int) -> None:
        """Have `count` threads work on a call."""
        while len(self.threads) < count:
            thread = threading.Thread(target=self._wait, name=f"srwm-{len(self.threads)}", daemon=True)
            self.threads.append(thread)
            thread.start()
        for _ in range(count):
            self.calls.put(call)

    def _wait(self) -> None:
        while True:
            self.calls.get().work()


_helpers = _Helpers()


def _forget_helpers() -> None:
    global _helpers
    _helpers = _Helpers()


# Threads do not survive a fork; the child starts its own.
os.register_at_fork(after_in_child=_forget_helpers)


@functools.lru_cache
def _layout(shapes: tuple[tuple[int, int], ...], itemsize: int) -> tuple[list[int], int]:
    """Where matrices of these shapes begin when they lie one after another, rows padded, and where the last ends."""
    sizes = [rows * -(-columns * itemsize // BLOCK_BYTES) * BLOCK_BYTES for rows, columns in shapes]
    return [sum(sizes[:i]) for i in range(len(sizes))], sum(sizes)


def _allocate(starts: list[int], size: int) -> tuple[Any, tuple[int, ...]]:
    memory = np.empty(size + BLOCK_BYTES, np.uint8)
    start = -(-memory.ctypes.data // BLOCK_BYTES) * BLOCK_BYTES
    return memory, tuple([start + each for each in starts])


def segments(reset: Tensor | None) -> Tensor | None:
    """For each step, the last reset at or before it, or -1: [b, t]."""
    if reset is None:
        return None
    return torch.where(reset, torch.arange(reset.shape[1]), -1).cummax(1).values


def over_heads(
    loop: Callable[..., None],
    heads: int,
    work: int,
    scratch: tuple[tuple[int, int], ...],
    sizes: tuple[int, ...],
    reset: Tensor | None,
    tables: Sequence[Tensor | None],
) -> None:
    """Call `loop(first, last, scratch, zero, sizes, reset, tables)` on shares of the heads, on several threads.

    Numba's own threads abort the process when two Python threads enter them at once, and do not survive a fork; these
    do neither. The compiled loops release the interpreter, so Python's threads suffice. A loop is given addresses;
    those of tensors that are None are 0.

    Args:
        loop: compiled; writes only what belongs to its heads.
        heads: how many there are, over the whole batch.
        work: about how many multiplications all of it takes.
        scratch: shapes of the matrices a thread needs for itself.
        sizes: handed on.
        reset: whatever tells where the state is reset.
        tables: contiguous tensors of one dtype, which `zero` also has.
    """
    dtype = next(each.dtype for each in tables if each is not None)
    addresses = tuple([0 if each is None else each.data_ptr() for each in tables])
    arguments = (_ZERO[dtype], sizes, 0 if reset is None else reset.data_ptr(), addresses)
    layout = _layout(scratch, dtype.itemsize)
    threads = min(torch.get_num_threads(), heads, 1 + work // MIN_WORK)
    if threads == 1:
        _memory, places = _allocate(*layout)
        loop(0, heads, places, *arguments)
        return
    call = _Call(loop, heads, min(heads, SHARES * threads), layout, arguments, (tables, reset))
    _helpers.join(call, threads - 1)
    call.work()
    call.finished.acquire()
    if call.problem is not None:
        raise call.problem
