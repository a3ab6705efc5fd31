"""The self-referential recurrence on a GPU: each head's matrix stays in registers over the whole sequence.

One program runs one head of one sequence; `../_tiles.py` says how it holds the matrix. The parts q, k, beta of the matrix
do not depend on its part y. Where all of it fits the registers, one kernel runs both (`CORE` and `READ`); where it
does not, the core runs first and the columns of y follow, block by block, in programs of their own. Going back, y
comes first and hands the core its share of the gradients.
"""

import functools
from typing import Any, NamedTuple, no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from .._kernels import segments
from .._tiles import dot_rows, dot_share, load_tile, mat_vec_share, outer, pick, rows, softmax_rows, store_tile, vec_mat


@triton.jit
@no_type_check
def _add_matrix(
    matrix, row, col_y, col, col_b, unit, w_y, w_q, w_k, w_b,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
):
    """Add a [D, M] matrix in memory to its four tiles."""
    M: tl.constexpr = OUT + 2 * D + RATES
    if READ:
        w_y += load_tile(matrix, 0, row, col_y, D, OUT, M, unit, w_y.dtype)
    if CORE:
        w_q += load_tile(matrix, OUT, row, col, D, D, M, unit, w_q.dtype)
        w_k += load_tile(matrix, OUT + D, row, col, D, D, M, unit, w_k.dtype)
        w_b += load_tile(matrix, OUT + 2 * D, row, col_b, D, RATES, M, unit, w_b.dtype)
    return w_y, w_q, w_k, w_b


@triton.jit
@no_type_check
def _store_matrix(
    matrix, row, col_y, col, col_b, unit, w_y, w_q, w_k, w_b,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
):
    """Store the four tiles as a [D, M] matrix."""
    M: tl.constexpr = OUT + 2 * D + RATES
    if READ:
        store_tile(matrix, 0, row, col_y, D, OUT, M, unit, w_y)
    if CORE:
        store_tile(matrix, OUT, row, col, D, D, M, unit, w_q)
        store_tile(matrix, OUT + D, row, col, D, D, M, unit, w_k)
        store_tile(matrix, OUT + 2 * D, row, col_b, D, RATES, M, unit, w_b)


@triton.jit(do_not_specialize=["unit", "steps", "heads"])
@no_type_check
def self_referential_fwd_kernel(
    x, weight, state, reset, y, end, q, k, beta, difference, steps, heads, unit,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, KEEP: tl.constexpr, SAVE: tl.constexpr, HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr,
):
    M: tl.constexpr = OUT + 2 * D + RATES
    R: tl.constexpr = ROWS // LANES
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    lane = tl.arange(0, LANES)
    col = tl.arange(0, ROWS)
    col_y = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col_b = tl.arange(0, NB)
    in_row = row < D
    in_col_y = col_y < OUT

    # Pointers to the first step of this head in [b, t, h, .] and to its matrix.
    first = (head // heads) * steps * heads + head % heads
    x += first * D
    y += first * OUT
    q += first * D
    k += first * D
    beta += first * RATES
    difference += first * M
    reset += (head // heads) * steps
    weight += (head % heads) * D * M

    zero_y = tl.zeros([LANES, BLOCK, R], ACC)
    zero = tl.zeros([LANES, ROWS, R], ACC)
    zero_b = tl.zeros([LANES, NB, R], ACC)
    w_y, w_q, w_k, w_b = _add_matrix(
        weight, row, col_y, col, col_b, unit, zero_y, zero, zero, zero_b, D, OUT, RATES, CORE, READ
    )
    if HAS_STATE:
        w_y, w_q, w_k, w_b = _add_matrix(
            state + head * D * M, row, col_y, col, col_b, unit, w_y, w_q, w_k, w_b, D, OUT, RATES, CORE, READ
        )

    # The next step's input is asked for before this step's work, which hides the way to memory.
    next_x = tl.load(x + row, mask=in_row, other=0.0)
    for t in range(steps):
        if HAS_RESET:
            if tl.load(reset + t) != 0:
                w_y, w_q, w_k, w_b = _add_matrix(
                    weight, row, col_y, col, col_b, unit, zero_y, zero, zero, zero_b, D, OUT, RATES, CORE, READ
                )
        b_x = next_x.to(ACC)
        x += heads * D * (t + 1 < steps).to(tl.int32)
        next_x = tl.load(x + row, mask=in_row, other=0.0)

        if CORE:
            b_q = softmax_rows(tl.reshape(vec_mat(b_x, w_q), [LANES, R]), in_row)
            b_k = softmax_rows(tl.reshape(vec_mat(b_x, w_k), [LANES, R]), in_row)
            b_beta = 1 / (1 + tl.exp(-vec_mat(b_x, w_b)))
            if LANES >= 4:
                # One exchange between warps brings all rates to every warp, a lane each.
                rates = tl.sum(tl.where(lane[:, None] == col_b[None, :], b_beta[None, :], 0.0), axis=1)
                place = lane
            else:
                rates = b_beta
                place = col_b
            rate_y = pick(rates, place, 0)
            rate_q = pick(rates, place, 1 % RATES)
            rate_k = pick(rates, place, 2 % RATES)
            rate_b = pick(rates, place, 3 % RATES)
            if KEEP:
                tl.store(q + row, b_q, mask=in_row)
                tl.store(k + row, b_k, mask=in_row)
                tl.store(beta + col_b, b_beta, mask=col_b < RATES)
        else:
            b_q = tl.load(q + row, mask=in_row, other=0.0)
            b_k = tl.load(k + row, mask=in_row, other=0.0)
            rate_y = tl.load(beta)
        u = b_q - b_k

        if READ:
            tl.store(y + col_y, vec_mat(b_x, w_y), mask=in_col_y)
            d_y = vec_mat(u, w_y)
            w_y += outer(b_k, rate_y * d_y)
            if SAVE:
                tl.store(difference + col_y, d_y, mask=in_col_y)
        if CORE:
            d_q = vec_mat(u, w_q)
            d_k = vec_mat(u, w_k)
            d_b = vec_mat(u, w_b)
            w_q += outer(b_k, rate_q * d_q)
            w_k += outer(b_k, rate_k * d_k)
            w_b += outer(b_k, rate_b * d_b)
            if SAVE:
                # One store for both: every store of columns costs the warps an exchange.
                d_q_k = col[:, None] + D * tl.arange(0, 2)[None, :]
                tl.store(difference + OUT + d_q_k, tl.join(d_q, d_k), mask=(col < D)[:, None])
                tl.store(difference + OUT + 2 * D + col_b, d_b, mask=col_b < RATES)

        y += heads * OUT
        q += heads * D
        k += heads * D
        beta += heads * RATES
        difference += heads * M

    # The state is the change: what the matrix is now, less what it was at first.
    w_y, w_q, w_k, w_b = _add_matrix(
        weight, row, col_y, col, col_b, unit, -w_y, -w_q, -w_k, -w_b, D, OUT, RATES, CORE, READ
    )
    _store_matrix(
        end + head * D * M, row, col_y, col, col_b, unit, -w_y, -w_q, -w_k, -w_b, D, OUT, RATES, CORE, READ
    )


@triton.jit
@no_type_check
def _load_step(
    t, dy, x, q, k, beta, difference, heads, row, col_y, col, col_b,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
):
    """Everything the backward pass reads of one step; parts that are not run are loaded as zeros."""
    M: tl.constexpr = OUT + 2 * D + RATES
    step = t * heads
    b_x = tl.load(x + step * D + row, mask=row < D, other=0.0)
    b_q = tl.load(q + step * D + row, mask=row < D, other=0.0)
    b_k = tl.load(k + step * D + row, mask=row < D, other=0.0)
    rate_y = tl.load(beta + step * RATES)
    rate_q = tl.load(beta + step * RATES + 1 % RATES)
    rate_k = tl.load(beta + step * RATES + 2 % RATES)
    rate_b = tl.load(beta + step * RATES + 3 % RATES)
    difference += step * M
    b_dy = tl.load(dy + step * OUT + col_y, mask=(col_y < OUT) & READ, other=0.0)
    d_y = tl.load(difference + col_y, mask=(col_y < OUT) & READ, other=0.0)
    d_q = tl.load(difference + OUT + col, mask=(col < D) & CORE, other=0.0)
    d_k = tl.load(difference + OUT + D + col, mask=(col < D) & CORE, other=0.0)
    d_b = tl.load(difference + OUT + 2 * D + col_b, mask=(col_b < RATES) & CORE, other=0.0)
    return b_x, b_q, b_k, rate_y, rate_q, rate_k, rate_b, b_dy, d_y, d_q, d_k, d_b


@triton.jit(do_not_specialize=["unit", "steps", "heads"])
@no_type_check
def self_referential_bwd_kernel(
    dy, dend, x, weight, state, segment, end, q, k, beta, difference, share, dx, dstate, dreset, steps, heads, unit,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr,
):
    M: tl.constexpr = OUT + 2 * D + RATES
    R: tl.constexpr = ROWS // LANES
    SHARE: tl.constexpr = 3 * D + 1
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    lane = tl.arange(0, LANES)
    col = tl.arange(0, ROWS)
    col_y = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col_b = tl.arange(0, NB)
    in_row = row < D

    first = (head // heads) * steps * heads + head % heads
    dy += first * OUT
    x += first * D
    q += first * D
    k += first * D
    beta += first * RATES
    difference += first * M
    dx += first * D
    # The blocks of y hand over their shares side by side: [blocks, b, t, h, du | dk | dx | drate].
    share += (tl.program_id(1) * tl.num_programs(0).to(tl.int64) * steps + first) * SHARE
    segment += (head // heads) * steps
    weight += (head % heads) * D * M
    matrix = head * D * M

    zero_y = tl.zeros([LANES, BLOCK, R], ACC)
    zero = tl.zeros([LANES, ROWS, R], ACC)
    zero_b = tl.zeros([LANES, NB, R], ACC)
    # w is the matrix, g the gradient of the loss with respect to it; both start from the end of the sequence.
    w_y, w_q, w_k, w_b = _add_matrix(
        weight, row, col_y, col, col_b, unit, zero_y, zero, zero, zero_b, D, OUT, RATES, CORE, READ
    )
    w_y, w_q, w_k, w_b = _add_matrix(
        end + matrix, row, col_y, col, col_b, unit, w_y, w_q, w_k, w_b, D, OUT, RATES, CORE, READ
    )
    g_y, g_q, g_k, g_b = _add_matrix(
        dend + matrix, row, col_y, col, col_b, unit, zero_y, zero, zero, zero_b, D, OUT, RATES, CORE, READ
    )

    next_x, next_q, next_k, next_ry, next_rq, next_rk, next_rb, next_dy, next_d_y, next_d_q, next_d_k, next_d_b = (
        _load_step(
            steps - 1, dy, x, q, k, beta, difference, heads, row, col_y, col, col_b, D, OUT, RATES, CORE, READ
        )
    )
    if CORE and not READ:
        last = share + (steps - 1) * heads * SHARE
        next_share_u = tl.load(last + row, mask=in_row, other=0.0)
        next_share_k = tl.load(last + D + row, mask=in_row, other=0.0)
        next_share_x = tl.load(last + 2 * D + row, mask=in_row, other=0.0)
        next_share_b = tl.load(last + 3 * D)
    for i in range(steps):
        t = steps - 1 - i
        b_x = next_x.to(ACC)
        b_q = next_q
        b_k = next_k
        rate_y = next_ry
        rate_q = next_rq
        rate_k = next_rk
        rate_b = next_rb
        b_dy = next_dy.to(ACC)
        d_y = next_d_y
        d_q = next_d_q
        d_k = next_d_k
        d_b = next_d_b
        next_x, next_q, next_k, next_ry, next_rq, next_rk, next_rb, next_dy, next_d_y, next_d_q, next_d_k, next_d_b = (
            _load_step(
                tl.maximum(t - 1, 0), dy, x, q, k, beta, difference, heads, row, col_y, col, col_b,
                D, OUT, RATES, CORE, READ,
            )
        )
        if CORE and not READ:
            share_u = next_share_u
            share_k = next_share_k
            share_x = next_share_x
            share_b = next_share_b
            before = share + tl.maximum(t - 1, 0) * heads * SHARE
            next_share_u = tl.load(before + row, mask=in_row, other=0.0)
            next_share_k = tl.load(before + D + row, mask=in_row, other=0.0)
            next_share_x = tl.load(before + 2 * D + row, mask=in_row, other=0.0)
            next_share_b = tl.load(before + 3 * D)
        here = t * heads
        u = b_q - b_k

        # Shares of dk, du, dx and of the gradients of the four rates, summed over the columns of this program.
        dk = tl.zeros([LANES, NB, R], ACC)
        du = tl.zeros([LANES, NB, R], ACC)
        db_x = tl.zeros([LANES, NB, R], ACC)
        a_y = tl.zeros([NB], ACC)
        if READ:
            write = rate_y * d_y
            w_y -= outer(b_k, write)
            kg = vec_mat(b_k, g_y)
            a_y = dot_share(kg, d_y, NB)
            dk += mat_vec_share(g_y, write, NB)
            dd = rate_y * kg
            du += mat_vec_share(w_y, dd, NB)
            db_x += mat_vec_share(w_y, b_dy, NB)
            g_y += outer(u, dd) + outer(b_x, b_dy)
        if CORE:
            write = rate_q * d_q
            w_q -= outer(b_k, write)
            kg = vec_mat(b_k, g_q)
            a_q = dot_share(kg, d_q, NB)
            dk += mat_vec_share(g_q, write, NB)
            dd = rate_q * kg
            du += mat_vec_share(w_q, dd, NB)
            g_q += outer(u, dd)

            write = rate_k * d_k
            w_k -= outer(b_k, write)
            kg = vec_mat(b_k, g_k)
            a_k = dot_share(kg, d_k, NB)
            dk += mat_vec_share(g_k, write, NB)
            dd = rate_k * kg
            du += mat_vec_share(w_k, dd, NB)
            g_k += outer(u, dd)

            write = rate_b * d_b
            w_b -= outer(b_k, write)
            kg = vec_mat(b_k, g_b)
            a_b = kg * d_b
            dk += mat_vec_share(g_b, write, NB)
            dd = rate_b * kg
            du += mat_vec_share(w_b, dd, NB)
            g_b += outer(u, dd)

        dk_du = tl.sum(tl.join(dk, du), axis=1)
        row_dk, row_du = tl.split(dk_du)
        if CORE:
            # One lane for each learning rate; a shared one gathers all four.
            if RATES == 1:
                a = tl.where(lane[:, None] == 0, (a_y + a_q + a_k + a_b)[None, :], 0.0)
            else:
                a = tl.where(lane[:, None] == 0, a_y[None, :], 0.0)
                a = tl.where(lane[:, None] == 1, a_q[None, :], a)
                a = tl.where(lane[:, None] == 2, a_k[None, :], a)
                a = tl.where(lane[:, None] == 3, a_b[None, :], a)
            d_rate = tl.sum(a, axis=1)
            if not READ:
                row_du += share_u
                row_dk += share_k
                d_rate += tl.where(lane == 0, share_b, 0.0)
            rate = tl.where(lane < 2, tl.where(lane == 0, rate_y, rate_q), tl.where(lane == 2, rate_k, rate_b))
            d_rate = d_rate * rate * (1 - rate)
            # Through the softmaxes and the sigmoid, back to what the matrix put out as q, k and beta.
            z_q = b_q * (row_du - dot_rows(row_du, b_q))
            z_k = b_k * (row_dk - row_du - dot_rows(row_dk - row_du, b_k))
            z_q = tl.reshape(z_q, [ROWS])
            z_k = tl.reshape(z_k, [ROWS])
            z_b = tl.sum(tl.where(lane[:, None] == col_b[None, :], d_rate[:, None], 0.0), axis=0)
            db_x += mat_vec_share(w_q, z_q, NB) + mat_vec_share(w_k, z_k, NB) + mat_vec_share(w_b, z_b, NB)
            g_q += outer(b_x, z_q)
            g_k += outer(b_x, z_k)
            g_b += outer(b_x, z_b)
        row_dx = tl.sum(db_x, axis=1)
        if CORE:
            if not READ:
                row_dx += share_x
            tl.store(dx + here * D + row, row_dx, mask=in_row)
        else:
            tl.store(share + here * SHARE + row, row_du, mask=in_row)
            tl.store(share + here * SHARE + D + row, row_dk, mask=in_row)
            tl.store(share + here * SHARE + 2 * D + row, row_dx, mask=in_row)
            tl.store(share + here * SHARE + 3 * D, tl.sum(a_y, axis=0))

        if HAS_RESET:
            if tl.load(segment + t) == t:
                # Before this step the matrix was `weight` itself: the gradient goes there and no further back.
                g_y, g_q, g_k, g_b = _add_matrix(
                    dreset + matrix, row, col_y, col, col_b, unit, g_y, g_q, g_k, g_b, D, OUT, RATES, CORE, READ
                )
                _store_matrix(
                    dreset + matrix, row, col_y, col, col_b, unit, g_y, g_q, g_k, g_b, D, OUT, RATES, CORE, READ
                )
                g_y = zero_y
                g_q = zero
                g_k = zero
                g_b = zero_b
                if t > 0:
                    # What stood before the reset is lost; write it again from the start of its segment.
                    start = tl.load(segment + t - 1)
                    w_y, w_q, w_k, w_b = _add_matrix(
                        weight, row, col_y, col, col_b, unit, zero_y, zero, zero, zero_b, D, OUT, RATES, CORE, READ
                    )
                    if HAS_STATE:
                        if start < 0:
                            w_y, w_q, w_k, w_b = _add_matrix(
                                state + matrix, row, col_y, col, col_b, unit, w_y, w_q, w_k, w_b,
                                D, OUT, RATES, CORE, READ,
                            )
                    for s in range(tl.maximum(start, 0), t):
                        _, _, s_k, s_ry, s_rq, s_rk, s_rb, _, s_d_y, s_d_q, s_d_k, s_d_b = _load_step(
                            s, dy, x, q, k, beta, difference, heads, row, col_y, col, col_b, D, OUT, RATES, CORE, READ
                        )
                        w_y += outer(s_k, s_ry * s_d_y)
                        w_q += outer(s_k, s_rq * s_d_q)
                        w_k += outer(s_k, s_rk * s_d_k)
                        w_b += outer(s_k, s_rb * s_d_b)

    _store_matrix(dstate + matrix, row, col_y, col, col_b, unit, g_y, g_q, g_k, g_b, D, OUT, RATES, CORE, READ)


class _Launch(NamedTuple):
    """How threads share the tiles of one program; measured on an H200, see docs/benchmarks."""

    lanes: int
    """Threads that share a column."""
    warps: int
    """Warps along the columns. Few are best: every exchange between warps waits for all of them."""
    block: int = 0
    """Columns of y in one program, where they run on their own."""


# By the number of rows, which is the head size rounded up to a power of two.
FUSED_FWD = {8: _Launch(4, 1), 16: _Launch(2, 1), 32: _Launch(2, 1)}
FUSED_BWD = {8: _Launch(4, 1), 16: _Launch(4, 1), 32: _Launch(8, 2)}
CORE_FWD = {**FUSED_FWD, 64: _Launch(4, 2), 128: _Launch(8, 8)}
CORE_BWD = {**FUSED_BWD, 64: _Launch(32, 4), 128: _Launch(32, 16)}
READ_FWD = {
    8: _Launch(4, 1, 64), 16: _Launch(2, 1, 64), 32: _Launch(4, 1, 32), 64: _Launch(2, 1, 16), 128: _Launch(8, 1, 16)
}  # fmt: skip
READ_BWD = {
    8: _Launch(4, 1, 64), 16: _Launch(4, 1, 64), 32: _Launch(8, 1, 32), 64: _Launch(16, 1, 32), 128: _Launch(16, 1, 16)
}  # fmt: skip

MAX_FUSED = 1024
"""The largest part y, rows times columns, that shares a program with the core: with more, registers run out."""


class _Part(NamedTuple):
    """One launch: which part of the matrix it runs, in how many programs a head, and the compiler's constants."""

    blocks: int
    constants: dict[str, Any]


@functools.cache
def _parts(d: int, out: int, rates: int, dtype: torch.dtype, crowded: bool, backward: bool) -> list[_Part]:
    """The launches that make up one pass, in their order."""
    rows = max(8, triton.next_power_of_2(d))
    wide = triton.next_power_of_2(out)
    core, read = (CORE_BWD, READ_BWD) if backward else (CORE_FWD, READ_FWD)
    fused = rows in FUSED_FWD and rows * wide <= MAX_FUSED
    if fused:
        launches = [(True, True, (FUSED_BWD if backward else FUSED_FWD)[rows])]
    else:
        launches = [(True, False, core[rows]), (False, True, read[rows])]
    parts = []
    for runs_core, runs_read, launch in launches:
        columns = launch.warps * 32 // launch.lanes
        nb = min(columns, rows)
        block = launch.block or max(wide, nb)
        constants: dict[str, Any] = {
            "D": d, "OUT": out, "RATES": rates, "ROWS": rows, "BLOCK": block, "NB": nb, "LANES": launch.lanes,
            "ACC": tl.float64 if dtype == torch.float64 else tl.float32,
            "CORE": runs_core, "READ": runs_read, "num_warps": launch.warps,
        }  # fmt: skip
        if fused and crowded:
            constants["maxnreg"] = 128
        parts.append(_Part(1 if runs_core else triton.cdiv(out, block), constants))
    return parts[::-1] if backward else parts


@functools.cache
def _multiprocessors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _is_crowded(x: Tensor) -> bool:
    """Whether more programs wait for a multiprocessor than it can hold when each takes all the registers it likes.

    With fewer registers each, some values go to memory and back, but all programs run at the same time.
    """
    return x.is_cuda and x.shape[0] * x.shape[2] > 10 * _multiprocessors(x.device)


def forward(
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    learning_rates: int,
    y: Tensor,
    end: Tensor,
    saved: list[Tensor] | None,
) -> None:
    """Fill y, end and the saved vectors."""
    b, t, h, d = x.shape
    parts = _parts(d, y.shape[3], learning_rates, weight.dtype, _is_crowded(x), False)
    keep = saved is not None or len(parts) > 1
    if saved is not None:
        q, k, beta, difference = saved
    else:
        # The core hands q, k and beta to the columns of y; nobody reads the differences.
        q, k, beta = (weight.new_empty(b, t, h, n if keep else 0) for n in (d, d, learning_rates))
        difference = end
    for part in parts:
        self_referential_fwd_kernel[(b * h, part.blocks)](
            x, weight, end if state is None else state, x if reset is None else reset.view(torch.uint8),
            y, end, q, k, beta, difference, t, h, 1,
            KEEP=keep, SAVE=saved is not None, HAS_STATE=state is not None, HAS_RESET=reset is not None,
            **part.constants,
        )  # fmt: skip


def backward(
    dy: Tensor,
    dend: Tensor,
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    end: Tensor,
    saved: tuple[Tensor, ...],
    dx: Tensor,
    dstate: Tensor,
    dreset: Tensor | None,
) -> None:
    """Fill the gradients of x and of the incoming state, and what resets pass on to the weight."""
    b, t, h, d = x.shape
    segment = end if reset is None else segments(reset)
    share = end
    for part in _parts(d, dy.shape[3], saved[2].shape[3], weight.dtype, _is_crowded(x), True):
        if not part.constants["CORE"]:
            share = weight.new_empty(part.blocks, b, t, h, 3 * d + 1)
        elif not part.constants["READ"]:
            share = share.sum(0) if share.shape[0] > 1 else share
        self_referential_bwd_kernel[(b * h, part.blocks)](
            dy, dend, x, weight, end if state is None else state, segment, end, *saved, share, dx, dstate,
            end if dreset is None else dreset, t, h, 1,
            HAS_STATE=state is not None, HAS_RESET=reset is not None, **part.constants,
        )  # fmt: skip

