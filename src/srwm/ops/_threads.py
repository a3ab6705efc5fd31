"""Runs a compiled loop over heads on as many threads as PyTorch would use."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MIN_WORK = 1 << 18
"""Multiplications below which one thread is faster than waking others."""

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    global _pool
    _pool = None


# The threads of a pool do not survive a fork; the child makes its own.
os.register_at_fork(after_in_child=_forget_pool)


def table(tensor: Tensor | None, like: Tensor) -> NDArray[Any]:
    """The memory of a contiguous tensor as rows along its last axis; None becomes a table without rows."""
    if tensor is None:
        return np.empty((0, 0), dtype=like.detach().numpy().dtype)
    return tensor.detach().view(-1, tensor.shape[-1]).numpy()


def flags(reset: Tensor | None) -> NDArray[np.bool_]:
    """Where the state is reset: [b, t], or nothing."""
    return np.empty((0, 0), dtype=np.bool_) if reset is None else reset.numpy()


def segments(reset: Tensor | None) -> NDArray[np.int64]:
    """For each step, the last reset at or before it, or -1: [b, t], or nothing."""
    if reset is None:
        return np.empty((0, 0), dtype=np.int64)
    starts = np.where(reset.numpy(), np.arange(reset.shape[1]), -1)
    return np.maximum.accumulate(starts, axis=1)


def over_heads(loop: Callable[..., None], heads: int, work: int, *arrays: Any) -> None:
    """Call `loop(first, last, *arrays)` on equal shares of the heads, in threads that run at the same time.

    Numba's own threads abort the process when two Python threads enter them at once and do not survive a fork; these
    do neither. The compiled loops release the interpreter, so Python's threads suffice.

    Args:
        loop: compiled, without the interpreter's lock; writes only what belongs to its heads.
        heads: how many there are, over the whole batch.
        work: about how many multiplications all of it takes.
        arrays: handed on.
    """
    threads = min(torch.get_num_threads(), heads, 1 + work // MIN_WORK)
    if threads == 1:
        loop(0, heads, *arrays)
        return
    global _pool
    if _pool is None or _pool._max_workers < threads - 1:
        _pool = ThreadPoolExecutor(threads - 1, thread_name_prefix="srwm")
    bounds = [heads * i // threads for i in range(threads + 1)]
    waiting = [_pool.submit(loop, *span, *arrays) for span in itertools.pairwise(bounds[1:])]
    loop(bounds[0], bounds[1], *arrays)
    for share in waiting:
        share.result()
