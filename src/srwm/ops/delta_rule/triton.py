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

from .._kernels import segments
from .._tiles import load_tile, outer, rows, store_tile, sum_both, vec_mat, zeros


@triton.jit(do_not_specialize=["unit", "steps", "heads", "state_columns"])
@no_type_check
def delta_rule_fwd_kernel(
    q, k, v, beta, state, state_columns, reset, y, end, error, steps, heads, unit,
    D: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    SAVE: tl.constexpr, HAS_RESET: tl.constexpr,
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

    # The next step's inputs are asked for before this step's work, which hides the way to memory.
    next_q = tl.load(q + row, mask=in_row, other=0.0)
    next_k = tl.load(k + row, mask=in_row, other=0.0)
    next_v = tl.load(v + col, mask=in_col, other=0.0)
    next_beta = tl.load(beta)
    for t in range(steps):
        if HAS_RESET:
            if tl.load(reset + t) != 0:
                w = zeros(row, BLOCK, ACC)
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
        w += outer(b_k, b_beta * b_error)
        here = t * heads
        tl.store(y + here * E + col, vec_mat(b_q, w), mask=in_col)
        if SAVE:
            tl.store(error + here * E + col, b_error, mask=in_col)

    store_tile(end + head * D * E, 0, row, col, D, E, E, unit, w)


@triton.jit
@no_type_check
def _load_step(t, dy, q, k, beta, error, heads, row, col, D: tl.constexpr, E: tl.constexpr):
    """Everything the backward pass reads of one step."""
    step = t * heads
    b_q = tl.load(q + step * D + row, mask=row < D, other=0.0)
    b_k = tl.load(k + step * D + row, mask=row < D, other=0.0)
    b_beta = tl.load(beta + step)
    b_dy = tl.load(dy + step * E + col, mask=col < E, other=0.0)
    b_error = tl.load(error + step * E + col, mask=col < E, other=0.0)
    return b_q, b_k, b_beta, b_dy, b_error


@triton.jit(do_not_specialize=["unit", "steps", "heads"])
@no_type_check
def delta_rule_bwd_kernel(
    dy, dend, q, k, beta, state, segment, end, error, dq, dk, dv, dbeta, dstate, steps, heads, unit,
    D: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr,
):  # fmt: skip
    """Run one block of columns back through the sequence, undoing each update."""
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    in_row = row < D
    in_col = col < E

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

    zero = zeros(row, BLOCK, ACC)
    # w is the matrix, g the gradient of the loss with respect to it; both start from the end of the sequence.
    w = load_tile(end + matrix, 0, row, col, D, E, E, unit, ACC)
    g = load_tile(dend + matrix, 0, row, col, D, E, E, unit, ACC)

    next_q, next_k, next_beta, next_dy, next_error = _load_step(steps - 1, dy, q, k, beta, error, heads, row, col, D, E)
    for i in range(steps):
        t = steps - 1 - i
        b_q = next_q.to(ACC)
        b_k = next_k.to(ACC)
        b_beta = next_beta.to(ACC)
        b_dy = next_dy.to(ACC)
        b_error = next_error
        next_q, next_k, next_beta, next_dy, next_error = _load_step(
            tl.maximum(t - 1, 0), dy, q, k, beta, error, heads, row, col, D, E
        )

        share_q = w * b_dy[None, :, None]
        g += outer(b_q, b_dy)
        write = b_beta * b_error
        w -= outer(b_k, write)
        kg = vec_mat(b_k, g)
        b_dv = b_beta * kg
        share_k = g * write[None, :, None] - w * b_dv[None, :, None]
        g -= outer(b_k, b_dv)

        b_dq, b_dk = sum_both(share_q, share_k)
        here = t * heads
        tl.store(dq + here * D + row, b_dq, mask=in_row)
        tl.store(dk + here * D + row, b_dk, mask=in_row)
        tl.store(dv + here * E + col, b_dv, mask=in_col)
        tl.store(dbeta + here, tl.sum(kg * b_error, axis=0))

        if HAS_RESET:
            if tl.load(segment + t) == t:
                # Before this step the matrix was zero: no gradient goes further back.
                g = zero
                if t > 0:
                    # What stood before the reset is lost; write it again from the start of its segment.
                    start = tl.load(segment + t - 1)
                    w = zero
                    if HAS_STATE:
                        if start < 0:
                            w = load_tile(state + matrix, 0, row, col, D, E, E, unit, ACC)
                    for s in range(tl.maximum(start, 0), t):
                        _, s_k, s_beta, _, s_error = _load_step(s, dy, q, k, beta, error, heads, row, col, D, E)
                        w += outer(s_k.to(ACC), s_beta.to(ACC) * s_error)

    store_tile(dstate + matrix, 0, row, col, D, E, E, unit, g)


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
    return triton.cdiv(e, block), {
        "D": d, "E": e, "ROWS": rows_, "BLOCK": block, "LANES": launch.lanes, "ACC": accumulator,
        "num_warps": launch.warps,
    }  # fmt: skip


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    y: Tensor,
    end: Tensor,
    error: Tensor | None,
) -> None:
    """Fill y, end and the saved errors."""
    b, t, h, d = q.shape
    blocks, constants = _constants(d, v.shape[3], end.dtype, False)
    with torch.cuda.device_of(q):
        delta_rule_fwd_kernel[(b * h, blocks)](
            q, k, v, beta, end if state is None else state, 0 if state is None else v.shape[3],
            q if reset is None else reset.view(torch.uint8), y, end, end if error is None else error, t, h, 1,
            SAVE=error is not None, HAS_RESET=reset is not None, **constants,
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
    error: Tensor,
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
            error, shares[0], shares[1], dv, shares[2], dstate, t, h, 1,
            HAS_STATE=state is not None, HAS_RESET=reset is not None, **constants,
        )  # fmt: skip
    if blocks > 1:
        for gradient, share in zip((dq, dk, dbeta), shares, strict=True):
            gradient.copy_(share.sum(0))
