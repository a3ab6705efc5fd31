"""The forward kernel: one program runs a block of the columns of one head of one sequence."""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import (
    column_limits,
    find_jumps,
    largest_row,
    limits_when_decayed,
    load_tile,
    outer,
    rows,
    store_jump,
    store_tile,
    vec_mat,
    zeros,
)


@triton.jit(do_not_specialize=["unit", "steps", "heads", "state_columns", "interval"])
@no_type_check
def delta_rule_fwd_kernel(
    q, k, v, beta, state, state_columns, decay, reset, y, end, error, checkpoints, jumps, steps, heads, unit, interval,
    D: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    SAVE: tl.constexpr, DECAYS: tl.constexpr, HAS_RESET: tl.constexpr, GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr,
    SHARED: tl.constexpr,
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
    decay += first
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
        # What undoing the decays since then would multiply with.
        undone = tl.full([], 1.0, ACC)

    # The next step's inputs are asked for before this step's work, which hides the way to memory.
    next_q = tl.load(q + row, mask=in_row, other=0.0)
    next_k = tl.load(k + row, mask=in_row, other=0.0)
    next_v = tl.load(v + col, mask=in_col, other=0.0)
    next_beta = tl.load(beta)
    if DECAYS:
        next_decay = tl.load(decay)
    for first_step in range(0, steps, interval):
        if SAVE:
            limit = column_limits(w, GROWTH)
            undone = tl.full([], 1.0, ACC)
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
                        undone = tl.full([], 1.0, ACC)
                        start = t
            b_q = next_q.to(ACC)
            b_k = next_k.to(ACC)
            b_v = next_v.to(ACC)
            b_beta = next_beta.to(ACC)
            if DECAYS:
                b_decay = next_decay.to(ACC)
            ahead = tl.minimum(t + 1, steps - 1) * heads
            next_q = tl.load(q + ahead * D + row, mask=in_row, other=0.0)
            next_k = tl.load(k + ahead * D + row, mask=in_row, other=0.0)
            next_v = tl.load(v + ahead * E + col, mask=in_col, other=0.0)
            next_beta = tl.load(beta + ahead)
            if DECAYS:
                next_decay = tl.load(decay + ahead)
                w *= b_decay

            b_error = b_v - vec_mat(b_k, w)
            b_update = b_beta * b_error
            w += outer(b_k, b_update)
            if SAVE:
                size = tl.abs(b_update) * largest_row(b_k)
                limit = tl.where(t == start, tl.maximum(limit, GROWTH * size), limit)
                if DECAYS:
                    limit, undone = limits_when_decayed(limit, undone, b_decay, MOST_DECAY)
                    size *= undone
                limit, jump = find_jumps(size, limit, jump, t, GROWTH)
            here = t * heads
            tl.store(y + here * E + col, vec_mat(b_q, w), mask=in_col)
            if SAVE:
                tl.store(error + here * E + col, b_error, mask=in_col)
        if SAVE:
            store_jump(jumps, tl.max(jump, axis=0), SHARED)
            jumps += 1

    store_tile(end + head * D * E, 0, row, col, D, E, E, unit, w)
