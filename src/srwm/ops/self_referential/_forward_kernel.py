"""The forward kernel: one program runs one head of one sequence, or a block of its outputs."""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import clip, lay_out_as_rows, outer, pick, rows, store_column, store_jump, to_lanes, vec_mat
from ._key_map import map_keys
from ._matrix import add_matrix, has_jump, limits_of, store_matrix, sum_of, zero_matrix


@triton.jit(do_not_specialize=["unit", "steps", "heads", "interval"])
@no_type_check
def self_referential_fwd_kernel(
    x, weight, state, reset, y, end, q, k, beta, scale, difference, checkpoints, jumps, steps, heads, unit, interval,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, GATES: tl.constexpr, L2_EPS: tl.constexpr,
    FORGET_MIN: tl.constexpr, FORGET_RANGE: tl.constexpr, FORGET_BIAS: tl.constexpr, CLIP: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE_B: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr,
    ACC: tl.constexpr, WARPS: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, KEEP: tl.constexpr, SAVE: tl.constexpr,
    HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr,
    SHARED: tl.constexpr,
):  # fmt: skip
    LAST: tl.constexpr = RATES + GATES
    M: tl.constexpr = OUT + 2 * D + LAST
    # A rate for each of y, q, k and beta, and two gates; eight lanes, of which some threads may hold two.
    SLOTS: tl.constexpr = 8 if GATES > 0 and LANES < 8 else LANES
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    lane = tl.arange(0, SLOTS)
    col = tl.arange(0, ROWS)
    col_y = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col_b = tl.arange(0, WIDE_B)
    place = (row, col_y, col, col_b, unit)
    in_row = row < D

    # Pointers to the first step of this head in [b, t, h, .] and to its matrix.
    first = (head // heads) * steps * heads + head % heads
    x += first * D
    y += first * OUT
    q += first * D
    k += first * D
    beta += first * LAST
    scale += first * 2
    difference += first * M
    reset += (head // heads) * steps
    weight += (head % heads) * D * M

    # Without gates, `matrix` is the whole matrix. With them it is its change, which decays, and `base` is added to it.
    zero = zero_matrix(row, BLOCK, ROWS, WIDE_B, ACC)
    base = add_matrix(weight, place, zero, D, OUT, LAST, CORE, READ)
    matrix = zero if GATES > 0 else base
    if HAS_STATE:
        matrix = add_matrix(state + head * D * M, place, matrix, D, OUT, LAST, CORE, READ)
    w_y, w_q, w_k, w_b = matrix

    if SAVE:
        intervals = (steps + interval - 1) // interval
        checkpoints += head * (intervals - 1) * D * M
        jumps += head * intervals
        # The largest difference of each column, from which an interval is known to have a jump by growth (see
        # `../_checkpoints.py`), but not where: that is found when it is written again. Where much has decayed is known.
        no_sizes = (
            tl.zeros(col_y.shape, ACC), tl.zeros(col.shape, ACC), tl.zeros(col.shape, ACC), tl.zeros(col_b.shape, ACC)
        )  # fmt: skip
        # What undoing the decays since would multiply with: of the columns of y, and of the others.
        undone_y = tl.full([], 1.0, ACC)
        undone = tl.full([], 1.0, ACC)
        has_decayed = tl.full([], 0, tl.int1)

    # The next step's input is asked for before this step's work, which hides the way to memory.
    next_x = tl.load(x + row, mask=in_row, other=0.0)
    if L2_EPS is not None and WARPS > 1:
        next_x = lay_out_as_rows(next_x, base[3] if CORE else base[0])
    for first_step in range(0, steps, interval):
        if SAVE:
            whole = (w_y, w_q, w_k, w_b)
            if first_step > 0:
                store_matrix(checkpoints, place, whole, D, OUT, LAST, CORE, READ)
                checkpoints += D * M
            if GATES > 0:
                whole = sum_of(base, whole)
                undone_y = tl.full([], 1.0, ACC)
                undone = tl.full([], 1.0, ACC)
                has_decayed = tl.full([], 0, tl.int1)
            limits = limits_of(whole, GROWTH)
            size_y, size_q, size_k, size_b = no_sizes
            jump = tl.full([], -1, tl.int32)
        for t in range(first_step, tl.minimum(first_step + interval, steps)):
            if HAS_RESET:
                if tl.load(reset + t) != 0:
                    if SAVE:
                        sizes = (size_y, size_q, size_k, size_b)
                        if GATES > 0:
                            if has_decayed:
                                limits = limits_of(base, GROWTH)
                        jump = tl.where(has_jump(sizes, limits, CORE, READ), t - 1, jump)
                        size_y, size_q, size_k, size_b = no_sizes
                    if GATES > 0:
                        w_y, w_q, w_k, w_b = zero
                    else:
                        w_y, w_q, w_k, w_b = add_matrix(weight, place, zero, D, OUT, LAST, CORE, READ)
                    if SAVE:
                        if GATES > 0:
                            limits = limits_of(base, GROWTH)
                            undone_y = tl.full([], 1.0, ACC)
                            undone = tl.full([], 1.0, ACC)
                            has_decayed = tl.full([], 0, tl.int1)
                        else:
                            limits = limits_of((w_y, w_q, w_k, w_b), GROWTH)
            b_x = next_x.to(ACC)
            x += heads * D * (t + 1 < steps).to(tl.int32)
            next_x = tl.load(x + row, mask=in_row, other=0.0)

            if GATES > 0:
                all_y, all_q, all_k, all_b = sum_of(base, (w_y, w_q, w_k, w_b))
            else:
                all_y, all_q, all_k, all_b = w_y, w_q, w_k, w_b
            if CORE:
                b_q, b_k, col_q, col_k, scale_q, scale_k = map_keys(
                    vec_mat(b_x, all_q), vec_mat(b_x, all_k), b_x, in_row, L2_EPS, WARPS
                )
                z_b = vec_mat(b_x, all_b)
                if GATES > 0:
                    is_gate = (col_b >= RATES) & (col_b < LAST)
                    b_beta = 1 / (1 + tl.exp(-tl.where(is_gate, z_b + FORGET_BIAS, z_b)))
                    b_beta = tl.where(is_gate, FORGET_MIN + FORGET_RANGE * b_beta, b_beta)
                else:
                    b_beta = 1 / (1 + tl.exp(-z_b))
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
                if GATES > 0:
                    keep_y = 1 - pick(rates, index, RATES)
                    keep = 1 - pick(rates, index, LAST - 1)
                if KEEP:
                    store_column(q, col_q, col, D, row, unit)
                    store_column(k, col_k, col, D, row, unit)
                    store_column(beta, b_beta, col_b, LAST, row, unit)
                if SAVE and L2_EPS is not None:
                    tl.store(scale, scale_q)
                    tl.store(scale + 1, scale_k)
            else:
                b_q = tl.load(q + row, mask=in_row, other=0.0)
                b_k = tl.load(k + row, mask=in_row, other=0.0)
                rate_y = tl.load(beta)
                if GATES > 0:
                    keep_y = 1 - tl.load(beta + RATES)
                    keep = keep_y
            u = b_q - b_k
            if GATES > 0 and SAVE:
                undone_y = undone_y / keep_y
                undone = undone / keep

            if READ:
                store_column(y, vec_mat(b_x, all_y), col_y, OUT, row, unit)
                d_y = clip(vec_mat(u, all_y), CLIP)
                if GATES > 0:
                    w_y *= keep_y
                w_y += outer(b_k, rate_y * d_y)
                if SAVE:
                    size_y = tl.maximum(size_y, tl.abs(d_y))
                    store_column(difference, d_y, col_y, OUT, row, unit)
            if CORE:
                d_q = clip(vec_mat(u, all_q), CLIP)
                d_k = clip(vec_mat(u, all_k), CLIP)
                d_b = clip(vec_mat(u, all_b), CLIP)
                if GATES > 0:
                    w_q *= keep
                    w_k *= keep
                    w_b *= keep
                w_q += outer(b_k, rate_q * d_q)
                w_k += outer(b_k, rate_k * d_k)
                w_b += outer(b_k, rate_b * d_b)
                if SAVE:
                    size_q = tl.maximum(size_q, tl.abs(d_q))
                    size_k = tl.maximum(size_k, tl.abs(d_k))
                    size_b = tl.maximum(size_b, tl.abs(d_b))
                    store_column(difference + OUT, d_q, col, D, row, unit)
                    store_column(difference + OUT + D, d_k, col, D, row, unit)
                    store_column(difference + OUT + 2 * D, d_b, col_b, LAST, row, unit)

            if GATES > 0 and SAVE:
                gone_y = (undone_y > MOST_DECAY) & READ
                gone = (undone > MOST_DECAY) & CORE
                undone_y = tl.where(gone_y, 1.0, undone_y)
                undone = tl.where(gone, 1.0, undone)
                jump = tl.where(gone_y | gone, t, jump)
                has_decayed |= gone_y | gone

            y += heads * OUT
            q += heads * D
            k += heads * D
            beta += heads * LAST
            scale += heads * 2
            difference += heads * M
        if SAVE:
            sizes = (size_y, size_q, size_k, size_b)
            last = tl.minimum(first_step + interval, steps) - 1
            if GATES > 0:
                # What a column held at first may be gone by now; what the weight gives it is not.
                if has_decayed:
                    limits = limits_of(base, GROWTH)
            jump = tl.where(has_jump(sizes, limits, CORE, READ), last, jump)
            store_jump(jumps, jump, SHARED)
            jumps += 1

    # The state is the change: what the matrix is now, less what it was at first.
    end += head * D * M
    if GATES > 0:
        store_matrix(end, place, (w_y, w_q, w_k, w_b), D, OUT, LAST, CORE, READ)
    else:
        w_y, w_q, w_k, w_b = add_matrix(weight, place, (-w_y, -w_q, -w_k, -w_b), D, OUT, LAST, CORE, READ)
        store_matrix(end, place, (-w_y, -w_q, -w_k, -w_b), D, OUT, LAST, CORE, READ)
