"""The delta rule on a GPU: each head's matrix stays in registers over the whole sequence.

One program runs a block of the columns of one head of one sequence; `../_tiles.py` says how it holds them. Columns do
not depend on each other, so wide heads are spread over several programs; going back, their shares of the gradients of
q, k and beta are written side by side and added up afterwards, always in the same order.
"""

import functools
from typing import Any, NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from .. import _checkpoints
from .._kernels import segments
from .._tiles import (
    column_limits,
    find_jumps,
    largest_row,
    load_tile,
    outer,
    rows,
    store_jump,
    store_tile,
    sum_both,
    vec_mat,
    zeros,
)
from ._saved import GROWTH, Saved


@triton.jit(do_not_specialize=["unit", "steps", "heads", "state_columns", "interval"])
@no_type_check
def delta_rule_fwd_kernel(
    q, k, v, beta, state, state_columns, reset, y, end, error, checkpoints, jumps, steps, heads, unit, interval,
    D: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    SAVE: tl.constexpr, HAS_RESET: tl.constexpr, GROWTH: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """Run one block of columns through the sequence."""
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_row = row < D
    in_col = col < E

    # Pointers to the first step of this head in [b, t, h, .]; a step further is `heads` rows further.
    first = (head // heads) * steps * heads + head % heads
    q += first * D
    k += first * D
    v += first * E
    beta += first
    y += first * E
    error += first * E
    reset += (head // heads) * steps

    # Without a state no column is loaded, but the load must stand here: the compiler lays the tile out by it.
    w = load_tile(state + head * D * E, 0, row, col, D, state_columns, E, unit, ACC)
    if SAVE:
        intervals = (steps + interval - 1) // interval
        checkpoints += head * (intervals - 1) * D * E
        jumps += head * intervals
        # The last steps at which an update was beyond its limit (see `../_checkpoints.py`).
        jump = tl.full(col.shape, -1, tl.int32)

    # The next step's inputs are asked for before this step's work, which hides the way to memory.
    next_q = tl.load(q + row, mask=in_row, other=0.0)
    next_k = tl.load(k + row, mask=in_row, other=0.0)
    next_v = tl.load(v + col, mask=in_col, other=0.0)
    next_beta = tl.load(beta)
    for first_step in range(0, steps, interval):
        if SAVE:
            limit = column_limits(w, GROWTH)
            # A first step is no jump: what undoing it leaves touches nothing but the gradient of its own key.
            start = first_step
            if first_step > 0:
                store_tile(checkpoints, 0, row, col, D, E, E, unit, w)
                checkpoints += D * E
        for t in range(first_step, tl.minimum(first_step + interval, steps)):
            if HAS_RESET:
                if tl.load(reset + t) != 0:
                    w = zeros(row, BLOCK, ACC)
                    if SAVE:
                        limit = column_limits(w, GROWTH)
                        start = t
            b_q = next_q.to(ACC)
            b_k = next_k.to(ACC)
            b_v = next_v.to(ACC)
            b_beta = next_beta.to(ACC)
            ahead = tl.minimum(t + 1, steps - 1) * heads
            next_q = tl.load(q + ahead * D + row, mask=in_row, other=0.0)
            next_k = tl.load(k + ahead * D + row, mask=in_row, other=0.0)
            next_v = tl.load(v + ahead * E + col, mask=in_col, other=0.0)
            next_beta = tl.load(beta + ahead)

            b_error = b_v - vec_mat(b_k, w)
            b_update = b_beta * b_error
            w += outer(b_k, b_update)
            if SAVE:
                size = tl.abs(b_update) * largest_row(b_k)
                limit = tl.where(t == start, tl.maximum(limit, GROWTH * size), limit)
                limit, jump = find_jumps(size, limit, jump, t, GROWTH)
            here = t * heads
            tl.store(y + here * E + col, vec_mat(b_q, w), mask=in_col)
            if SAVE:
                tl.store(error + here * E + col, b_error, mask=in_col)
        if SAVE:
            store_jump(jumps, tl.max(jump, axis=0), SHARED)
            jumps += 1

    store_tile(end + head * D * E, 0, row, col, D, E, E, unit, w)


@triton.jit
@no_type_check
def _load_update(t, k, beta, error, heads, row, col, D: tl.constexpr, E: tl.constexpr):
    """What one step wrote, and under which key."""
    step = t * heads
    b_k = tl.load(k + step * D + row, mask=row < D, other=0.0)
    b_beta = tl.load(beta + step)
    b_error = tl.load(error + step * E + col, mask=col < E, other=0.0)
    return b_k, b_beta, b_error


@triton.jit
@no_type_check
def _load_inputs(t, dy, q, heads, row, col, D: tl.constexpr, E: tl.constexpr):
    """What else the backward pass reads of one step."""
    step = t * heads
    b_q = tl.load(q + step * D + row, mask=row < D, other=0.0)
    b_dy = tl.load(dy + step * E + col, mask=col < E, other=0.0)
    return b_q, b_dy


@triton.jit
@no_type_check
def _write_again(
    base, t, state, segment, checkpoints, k, beta, error, interval, heads, row, col, unit,
    D: tl.constexpr, E: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr,
    HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, GROWTH: tl.constexpr,
):  # fmt: skip
    """The matrix before step t, from where an interval or an episode begins with step `base`; and the last jump."""
    is_reset = base < 0
    if HAS_RESET:
        is_reset = tl.load(segment + t) == base
    w = zeros(row, BLOCK, ACC)
    if not is_reset:
        if base > 0:
            w = load_tile(checkpoints + (base // interval - 1) * D * E, 0, row, col, D, E, E, unit, ACC)
        elif HAS_STATE:
            w = load_tile(state, 0, row, col, D, E, E, unit, ACC)
    limit = column_limits(w, GROWTH)
    jump = tl.full(col.shape, -1, tl.int32)
    next_k, next_beta, next_error = _load_update(base, k, beta, error, heads, row, col, D, E)
    for s in range(base, t):
        b_k = next_k.to(ACC)
        write = next_beta.to(ACC) * next_error
        next_k, next_beta, next_error = _load_update(s + 1, k, beta, error, heads, row, col, D, E)
        w += outer(b_k, write)
        size = tl.abs(write) * largest_row(b_k)
        limit = tl.where(s == base, tl.maximum(limit, GROWTH * size), limit)
        limit, jump = find_jumps(size, limit, jump, s, GROWTH)
    return w, tl.max(jump, axis=0)


@triton.jit
@no_type_check
def _steps_back(
    w, g, t, last, written, dy, q, k, beta, error, dq, dk, dv, dbeta, heads, row, col,
    D: tl.constexpr, E: tl.constexpr, ACC: tl.constexpr, JUMPS: tl.constexpr,
):  # fmt: skip
    """Go back from step t to step `last`, undoing each; w is the matrix after step t or, if `written`, before it."""
    in_row = row < D
    in_col = col < E
    next_q, next_dy = _load_inputs(t, dy, q, heads, row, col, D, E)
    next_k, next_beta, next_error = _load_update(t, k, beta, error, heads, row, col, D, E)
    for i in range(t - last + 1):
        here = (t - i) * heads
        b_q = next_q.to(ACC)
        b_k = next_k.to(ACC)
        b_beta = next_beta.to(ACC)
        b_dy = next_dy.to(ACC)
        b_error = next_error
        t_next = tl.maximum(t - i - 1, 0)
        next_q, next_dy = _load_inputs(t_next, dy, q, heads, row, col, D, E)
        next_k, next_beta, next_error = _load_update(t_next, k, beta, error, heads, row, col, D, E)

        write = b_beta * b_error
        if JUMPS:
            # What was written again is the matrix before this step already.
            w -= outer(b_k, tl.where(written & (i == 0), 0.0, write))
            share_q = (w + outer(b_k, write)) * b_dy[None, :, None]
        else:
            share_q = w * b_dy[None, :, None]
            w -= outer(b_k, write)
        g += outer(b_q, b_dy)
        kg = vec_mat(b_k, g)
        b_dv = b_beta * kg
        share_k = g * write[None, :, None] - w * b_dv[None, :, None]
        g -= outer(b_k, b_dv)

        b_dq, b_dk = sum_both(share_q, share_k)
        tl.store(dq + here * D + row, b_dq, mask=in_row)
        tl.store(dk + here * D + row, b_dk, mask=in_row)
        tl.store(dv + here * E + col, b_dv, mask=in_col)
        tl.store(dbeta + here, tl.sum(kg * b_error, axis=0))
    return w, g


@triton.jit(do_not_specialize=["unit", "steps", "heads", "interval"])
@no_type_check
def delta_rule_bwd_kernel(
    dy, dend, q, k, beta, state, segment, end, error, checkpoints, jumps, dq, dk, dv, dbeta, dstate,
    steps, heads, unit, interval,
    D: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, GROWTH: tl.constexpr,
):  # fmt: skip
    """Run one block of columns back through the sequence, undoing updates."""
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)

    first = (head // heads) * steps * heads + head % heads
    dy += first * E
    q += first * D
    k += first * D
    beta += first
    error += first * E
    dv += first * E
    # The shares of the blocks lie side by side: [blocks, b, t, h, .].
    shares = tl.program_id(1) * tl.num_programs(0).to(tl.int64) * steps + first
    dq += shares * D
    dk += shares * D
    dbeta += shares
    segment += (head // heads) * steps
    matrix = head * D * E
    end += matrix
    dend += matrix
    state += matrix
    dstate += matrix
    intervals = (steps + interval - 1) // interval
    checkpoints += head * (intervals - 1) * D * E
    jumps += head * intervals

    # w is the matrix, g the gradient of the loss with respect to it; both start from the end of the sequence.
    w = load_tile(end, 0, row, col, D, E, E, unit, ACC)
    g = load_tile(dend, 0, row, col, D, E, E, unit, ACC)
    for j in range(intervals):
        first_step = (intervals - 1 - j) * interval
        t = tl.minimum(first_step + interval, steps) - 1
        if j > 0:
            w = load_tile(checkpoints + (intervals - 1 - j) * D * E, 0, row, col, D, E, E, unit, ACC)
        last_jump = tl.load(jumps + intervals - 1 - j)
        if HAS_RESET | (last_jump >= first_step):
            # The interval falls into stretches that can be undone in one go.
            at_hand = t >= 0
            for _ in range(interval):
                # A loop that ends here would be laid out anew by the compiler; this one runs empty.
                if t >= first_step:
                    jump = last_jump
                    base = first_step
                    if HAS_RESET:
                        base = tl.maximum(base, tl.load(segment + t))
                    written = (t <= jump) | (not at_hand)
                    if written:
                        w, jump = _write_again(
                            base, t, state, segment, checkpoints, k, beta, error, interval, heads, row, col, unit,
                            D, E, BLOCK, ACC, HAS_STATE, HAS_RESET, GROWTH,
                        )  # fmt: skip
                    last = tl.minimum(t, tl.maximum(base, jump + 1))
                    w, g = _steps_back(
                        w,
                        g,
                        t,
                        last,
                        written,
                        dy,
                        q,
                        k,
                        beta,
                        error,
                        dq,
                        dk,
                        dv,
                        dbeta,
                        heads,
                        row,
                        col,
                        D,
                        E,
                        ACC,
                        True,
                    )
                    if HAS_RESET:
                        # What stood before a reset is not at hand.
                        at_hand = tl.load(segment + last) != last
                        if not at_hand:
                            # Before this step the matrix was zero, whatever went before: no gradient goes further back.
                            g = zeros(row, BLOCK, ACC)
                    t = last - 1
        else:
            w, g = _steps_back(
                w, g, t, first_step, False, dy, q, k, beta, error, dq, dk, dv, dbeta, heads, row, col, D, E, ACC, False
            )
    store_tile(dstate, 0, row, col, D, E, E, unit, g)


class _Launch(NamedTuple):
    """How threads share the tile of one program; measured on an H200, see docs/benchmarks."""

    lanes: int
    """Threads that share a column."""
    warps: int
    """Warps along the columns."""
    block: int
    """Columns of one program."""


# By the number of rows, which is the head size rounded up to a power of two.
FWD = {
    8: _Launch(4, 1, 64), 16: _Launch(4, 1, 16), 32: _Launch(2, 1, 32), 64: _Launch(4, 1, 16), 128: _Launch(8, 1, 16)
}  # fmt: skip
BWD = {
    8: _Launch(4, 1, 64), 16: _Launch(4, 1, 16), 32: _Launch(4, 1, 32), 64: _Launch(8, 1, 32), 128: _Launch(16, 1, 16)
}  # fmt: skip


@functools.cache
def _constants(d: int, e: int, dtype: torch.dtype, backward: bool) -> tuple[int, dict[str, Any]]:
    """The number of blocks, and what the compiler is told."""
    rows_ = max(8, triton.next_power_of_2(d))
    launch = (BWD if backward else FWD)[rows_]
    # No narrower than the threads that lie along the columns.
    block = max(min(launch.block, triton.next_power_of_2(e)), launch.warps * 32 // launch.lanes)
    accumulator = tl.float64 if dtype == torch.float64 else tl.float32
    constants = {
        "D": d, "E": e, "ROWS": rows_, "BLOCK": block, "LANES": launch.lanes, "ACC": accumulator,
        "num_warps": launch.warps,
    }  # fmt: skip
    if backward and rows_ <= 16:
        # What jumps need of registers would keep other programs from running at the same time.
        constants["maxnreg"] = 128
    return triton.cdiv(e, block), constants


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    y: Tensor,
    end: Tensor,
    saved: Saved | None,
) -> None:
    """Fill y, end and what is saved."""
    b, t, h, d = q.shape
    error, checkpoints, jumps = saved or (end,) * 3
    blocks, constants = _constants(d, v.shape[3], end.dtype, False)
    if saved is not None and blocks > 1:
        jumps.fill_(-1)
    with torch.cuda.device_of(q):
        delta_rule_fwd_kernel[(b * h, blocks)](
            q, k, v, beta, end if state is None else state, 0 if state is None else v.shape[3],
            q if reset is None else reset.view(torch.uint8), y, end, error, checkpoints, jumps,
            t, h, 1, t if saved is None else _checkpoints.steps_between(d, v.shape[3]),
            SAVE=saved is not None, HAS_RESET=reset is not None, GROWTH=GROWTH, SHARED=blocks > 1, **constants,
        )  # fmt: skip


def backward(
    dy: Tensor,
    dend: Tensor,
    q: Tensor,
    k: Tensor,
    beta: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    end: Tensor,
    saved: Saved,
    dq: Tensor,
    dk: Tensor,
    dv: Tensor,
    dbeta: Tensor,
    dstate: Tensor,
) -> None:
    """Fill the gradients of q, k, v, beta and of the incoming state."""
    b, t, h, d = q.shape
    blocks, constants = _constants(d, dy.shape[3], end.dtype, True)
    # Shares of several blocks are kept as precise as the state until they are added up.
    shares = [dq, dk, dbeta]
    if blocks > 1:
        shares = [end.new_empty(blocks, *each.shape) for each in shares]
    with torch.cuda.device_of(q):
        delta_rule_bwd_kernel[(b * h, blocks)](
            dy, dend, q, k, beta, end if state is None else state, end if reset is None else segments(reset), end,
            *saved, shares[0], shares[1], dv, shares[2], dstate, t, h, 1, _checkpoints.steps_between(d, dy.shape[3]),
            HAS_STATE=state is not None, HAS_RESET=reset is not None, GROWTH=GROWTH, **constants,
        )  # fmt: skip
    if blocks > 1:
        for gradient, share in zip((dq, dk, dbeta), shares, strict=True):
            gradient.copy_(share.sum(0))
