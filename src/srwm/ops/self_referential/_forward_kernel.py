"""The forward kernel: one program runs one head of one sequence, or a block of its outputs."""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import outer, pick, rows, softmax_rows, store_jump, to_lanes, vec_mat, zeros
from ._matrix import add_matrix, last_jump, limits_of, store_matrix


@triton.jit(do_not_specialize=["unit", "steps", "heads", "interval"])
@no_type_check
def self_referential_fwd_kernel(
    x, weight, state, reset, y, end, q, k, beta, difference, checkpoints, jumps, steps, heads, unit, interval,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, KEEP: tl.constexpr, SAVE: tl.constexpr,
    HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, GROWTH: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    M: tl.constexpr = OUT + 2 * D + RATES
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    lane = tl.arange(0, LANES)
    col = tl.arange(0, ROWS)
    col_y = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col_b = tl.arange(0, NB)
    place = (row, col_y, col, col_b, unit)
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

    zero = (zeros(row, BLOCK, ACC), zeros(row, ROWS, ACC), zeros(row, ROWS, ACC), zeros(row, NB, ACC))
    w_y, w_q, w_k, w_b = add_matrix(weight, place, zero, D, OUT, RATES, CORE, READ)
    if HAS_STATE:
        w_y, w_q, w_k, w_b = add_matrix(state + head * D * M, place, (w_y, w_q, w_k, w_b), D, OUT, RATES, CORE, READ)

    if SAVE:
        intervals = (steps + interval - 1) // interval
        checkpoints += head * (intervals - 1) * D * M
        jumps += head * intervals
        # The last steps at which a difference was beyond its limit (see `../_checkpoints.py`). Limits stay as they are
        # for an interval, which saves registers; when it is written again, they are raised as they should be.
        jump_y = tl.full(col_y.shape, -1, tl.int32)
        jump_q_k = tl.full(col.shape, -1, tl.int32)
        jump_b = tl.full(col_b.shape, -1, tl.int32)

    # The next step's input is asked for before this step's work, which hides the way to memory.
    next_x = tl.load(x + row, mask=in_row, other=0.0)
    for first_step in range(0, steps, interval):
        if SAVE:
            limit_y, limit_q, limit_k, limit_b = limits_of((w_y, w_q, w_k, w_b), GROWTH)
            if first_step > 0:
                store_matrix(checkpoints, place, (w_y, w_q, w_k, w_b), D, OUT, RATES, CORE, READ)
                checkpoints += D * M
        for t in range(first_step, tl.minimum(first_step + interval, steps)):
            if HAS_RESET:
                if tl.load(reset + t) != 0:
                    w_y, w_q, w_k, w_b = add_matrix(weight, place, zero, D, OUT, RATES, CORE, READ)
                    if SAVE:
                        limit_y, limit_q, limit_k, limit_b = limits_of((w_y, w_q, w_k, w_b), GROWTH)
            b_x = next_x.to(ACC)
            x += heads * D * (t + 1 < steps).to(tl.int32)
            next_x = tl.load(x + row, mask=in_row, other=0.0)

            if CORE:
                z_q = tl.reshape(vec_mat(b_x, w_q), row.shape)
                z_k = tl.reshape(vec_mat(b_x, w_k), row.shape)
                b_q, b_k = softmax_rows(z_q, z_k, in_row)
                b_beta = 1 / (1 + tl.exp(-vec_mat(b_x, w_b)))
                if LANES >= 4:
                    # One exchange between warps brings all rates to every warp, a lane each.
                    rates = to_lanes(b_beta, lane, col_b)
                    index = lane
                else:
                    rates = b_beta
                    index = col_b
                rate_y = pick(rates, index, 0)
                rate_q = pick(rates, index, 1 % RATES)
                rate_k = pick(rates, index, 2 % RATES)
                rate_b = pick(rates, index, 3 % RATES)
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
                    jump_y = tl.where(tl.abs(d_y) > limit_y, t, jump_y)
                    tl.store(difference + col_y, d_y, mask=in_col_y)
            if CORE:
                d_q = vec_mat(u, w_q)
                d_k = vec_mat(u, w_k)
                d_b = vec_mat(u, w_b)
                w_q += outer(b_k, rate_q * d_q)
                w_k += outer(b_k, rate_k * d_k)
                w_b += outer(b_k, rate_b * d_b)
                if SAVE:
                    jump_q_k = tl.where((tl.abs(d_q) > limit_q) | (tl.abs(d_k) > limit_k), t, jump_q_k)
                    jump_b = tl.where(tl.abs(d_b) > limit_b, t, jump_b)
                    # One store for both: every store of columns costs the warps an exchange.
                    d_q_k = col[:, None] + D * tl.arange(0, 2)[None, :]
                    tl.store(difference + OUT + d_q_k, tl.join(d_q, d_k), mask=(col < D)[:, None])
                    tl.store(difference + OUT + 2 * D + col_b, d_b, mask=col_b < RATES)

            y += heads * OUT
            q += heads * D
            k += heads * D
            beta += heads * RATES
            difference += heads * M
        if SAVE:
            store_jump(jumps, last_jump(jump_y, jump_q_k, jump_b, CORE, READ), SHARED)
            jumps += 1

    # The state is the change: what the matrix is now, less what it was at first.
    w_y, w_q, w_k, w_b = add_matrix(weight, place, (-w_y, -w_q, -w_k, -w_b), D, OUT, RATES, CORE, READ)
    store_matrix(end + head * D * M, place, (-w_y, -w_q, -w_k, -w_b), D, OUT, RATES, CORE, READ)
