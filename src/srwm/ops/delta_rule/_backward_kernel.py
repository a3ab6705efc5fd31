"""The backward kernel: it undoes updates and gathers the gradients, from the last step to the first."""

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
    store_tile,
    sum_both,
    sum_rows,
    vec_mat,
    zeros,
)


@triton.jit
@no_type_check
def _load_update(t, k, beta, decay, error, heads, row, col, D: tl.constexpr, E: tl.constexpr, DECAYS: tl.constexpr):
    """What one step wrote, under which key, and what it kept; where nothing decays, nobody looks at the latter."""
    step = t * heads
    b_k = tl.load(k + step * D + row, mask=row < D, other=0.0)
    b_beta = tl.load(beta + step)
    b_error = tl.load(error + step * E + col, mask=col < E, other=0.0)
    b_decay = b_beta
    if DECAYS:
        b_decay = tl.load(decay + step)
    return b_k, b_beta, b_decay, b_error


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
    base, t, state, segment, checkpoints, k, beta, decay, error, interval, heads, row, col, unit,
    D: tl.constexpr, E: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr,
    HAS_STATE: tl.constexpr, DECAYS: tl.constexpr, HAS_RESET: tl.constexpr,
    GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr,
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
    undone = tl.full([], 1.0, ACC)
    next_k, next_beta, next_decay, next_error = _load_update(base, k, beta, decay, error, heads, row, col, D, E, DECAYS)
    for s in range(base, t):
        b_k = next_k.to(ACC)
        b_decay = next_decay.to(ACC)
        write = next_beta.to(ACC) * next_error
        next_k, next_beta, next_decay, next_error = _load_update(
            s + 1, k, beta, decay, error, heads, row, col, D, E, DECAYS
        )
        if DECAYS:
            w *= b_decay
        w += outer(b_k, write)
        size = tl.abs(write) * largest_row(b_k)
        limit = tl.where(s == base, tl.maximum(limit, GROWTH * size), limit)
        if DECAYS:
            limit, undone = limits_when_decayed(limit, undone, b_decay, MOST_DECAY)
            size *= undone
        limit, jump = find_jumps(size, limit, jump, s, GROWTH)
    return w, tl.max(jump, axis=0)


@triton.jit
@no_type_check
def _steps_back(
    w, g, t, last, written, dy, q, k, beta, decay, error, dq, dk, dv, dbeta, ddecay, heads, row, col,
    D: tl.constexpr, E: tl.constexpr, ACC: tl.constexpr, DECAYS: tl.constexpr, JUMPS: tl.constexpr,
):  # fmt: skip
    """Go back from step t to step `last`, undoing each; w is the matrix after step t or, if `written`, before it.

    Where it decays, the matrix is w / kept and its gradient g kept, where `kept` is the product of what the steps
    undone so far had kept: so undoing a decay multiplies no tile. A step before which the matrix was written again may
    have kept nothing; that one's decay is not undone.
    """
    in_row = row < D
    in_col = col < E
    kept = tl.full([], 1.0, ACC)
    next_q, next_dy = _load_inputs(t, dy, q, heads, row, col, D, E)
    next_k, next_beta, next_decay, next_error = _load_update(t, k, beta, decay, error, heads, row, col, D, E, DECAYS)
    for i in range(t - last + 1):
        here = (t - i) * heads
        b_q = next_q.to(ACC)
        b_k = next_k.to(ACC)
        b_beta = next_beta.to(ACC)
        b_decay = next_decay.to(ACC)
        b_dy = next_dy.to(ACC)
        b_error = next_error
        t_next = tl.maximum(t - i - 1, 0)
        next_q, next_dy = _load_inputs(t_next, dy, q, heads, row, col, D, E)
        next_k, next_beta, next_decay, next_error = _load_update(
            t_next, k, beta, decay, error, heads, row, col, D, E, DECAYS
        )

        write = b_beta * b_error
        if DECAYS:
            is_written = written & (i == 0) if JUMPS else False
            undone = 1 / kept
            # What the matrix decayed to is w times this, before the step wrote into it.
            to_decayed = tl.where(is_written, b_decay, undone) if JUMPS else undone
            if JUMPS:
                w -= outer(b_k, tl.where(is_written, 0.0, kept * write))
                share_q = w * (to_decayed * b_dy)[None, :, None] + outer(b_k, write * b_dy)
            else:
                share_q = w * (undone * b_dy)[None, :, None]
                w -= outer(b_k, kept * write)
            g += outer(b_q, undone * b_dy)
            kg = kept * vec_mat(b_k, g)
            b_dv = b_beta * kg
            share_k = g * (kept * write)[None, :, None] - w * (to_decayed * b_dv)[None, :, None]
            g -= outer(b_k, undone * b_dv)
            b_ddecay = tl.sum(sum_rows(g * w), axis=0)
            if JUMPS:
                b_ddecay /= tl.where(is_written, 1.0, b_decay)
                g *= tl.where(is_written, b_decay, 1.0)
                kept *= tl.where(is_written, 1.0, b_decay)
            else:
                b_ddecay /= b_decay
                kept *= b_decay
            tl.store(ddecay + here, b_ddecay)
        else:
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
    if DECAYS:
        # Nobody goes on from this matrix: it is loaded or written again.
        g *= kept
    return w, g


@triton.jit(do_not_specialize=["unit", "steps", "heads", "interval"])
@no_type_check
def delta_rule_bwd_kernel(
    dy, dend, q, k, beta, state, decay, segment, end, error, checkpoints, jumps, dq, dk, dv, dbeta, dstate, ddecay,
    steps, heads, unit, interval,
    D: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    HAS_STATE: tl.constexpr, DECAYS: tl.constexpr, HAS_RESET: tl.constexpr,
    GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr,
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
    decay += first
    error += first * E
    dv += first * E
    # The shares of the blocks lie side by side: [blocks, b, t, h, .].
    shares = tl.program_id(1) * tl.num_programs(0).to(tl.int64) * steps + first
    dq += shares * D
    dk += shares * D
    dbeta += shares
    ddecay += shares
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
                            base, t, state, segment, checkpoints, k, beta, decay, error, interval, heads, row, col,
                            unit, D, E, BLOCK, ACC, HAS_STATE, DECAYS, HAS_RESET, GROWTH, MOST_DECAY,
                        )  # fmt: skip
                    last = tl.minimum(t, tl.maximum(base, jump + 1))
                    w, g = _steps_back(
                        w, g, t, last, written, dy, q, k, beta, decay, error, dq, dk, dv, dbeta, ddecay, heads, row,
                        col, D, E, ACC, DECAYS, True,
                    )  # fmt: skip
                    if HAS_RESET:
                        # What stood before a reset is not at hand.
                        at_hand = tl.load(segment + last) != last
                        if not at_hand:
                            # Before this step the matrix was zero, whatever went before: no gradient goes further back.
                            g = zeros(row, BLOCK, ACC)
                            if DECAYS:
                                tl.store(ddecay + last * heads, 0.0)
                    t = last - 1
        else:
            w, g = _steps_back(
                w, g, t, first_step, False, dy, q, k, beta, decay, error, dq, dk, dv, dbeta, ddecay, heads, row, col,
                D, E, ACC, DECAYS, False,
            )  # fmt: skip
    if DECAYS and not HAS_STATE:
        # Nothing was there that could decay; what undoing leaves is only nearly that.
        tl.store(ddecay, 0.0)
    store_tile(dstate, 0, row, col, D, E, E, unit, g)
