"""What the backward kernel reads of a step, and how it writes the matrix again where undoing would be too inexact."""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import find_jumps, outer
from ._matrix import add_matrix, last_jump, limits_anew, limits_of, sum_of


@triton.jit
@no_type_check
def load_update(
    t, k, beta, difference, heads, place,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, GATES: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr,
):  # fmt: skip
    """What one step wrote, under which key, and what it kept; parts that are not run are loaded as zeros."""
    LAST: tl.constexpr = RATES + GATES
    M: tl.constexpr = OUT + 2 * D + LAST
    row, col_y, col, col_b, _ = place
    step = t * heads
    b_k = tl.load(k + step * D + row, mask=row < D, other=0.0)
    beta += step * LAST
    rate_y = tl.load(beta)
    rate_q = tl.load(beta + 1 % RATES)
    rate_k = tl.load(beta + 2 % RATES)
    rate_b = tl.load(beta + 3 % RATES)
    difference += step * M
    d_y = tl.load(difference + col_y, mask=(col_y < OUT) & READ, other=0.0)
    d_q = tl.load(difference + OUT + col, mask=(col < D) & CORE, other=0.0)
    d_k = tl.load(difference + OUT + D + col, mask=(col < D) & CORE, other=0.0)
    d_b = tl.load(difference + OUT + 2 * D + col_b, mask=(col_b < LAST) & CORE, other=0.0)
    # What the columns of y forget, and the others; without gates, nobody looks.
    forget_y = rate_y
    forget = rate_b
    if GATES > 0:
        forget_y = tl.load(beta + RATES)
        forget = tl.load(beta + LAST - 1)
    return b_k, (rate_y, rate_q, rate_k, rate_b), (d_y, d_q, d_k, d_b), (forget_y, forget)


@triton.jit
@no_type_check
def load_inputs(
    t, dy, x, q, scale, heads, place, D: tl.constexpr, OUT: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
    L2_EPS: tl.constexpr,
):  # fmt: skip
    """What else the backward pass reads of one step."""
    row, col_y, _, _, _ = place
    step = t * heads
    b_x = tl.load(x + step * D + row, mask=row < D, other=0.0)
    b_q = tl.load(q + step * D + row, mask=row < D, other=0.0)
    b_dy = tl.load(dy + step * OUT + col_y, mask=(col_y < OUT) & READ, other=0.0)
    # Softmaxes have no scales, and nobody looks.
    scale_q = b_q
    scale_k = b_q
    if CORE and L2_EPS is not None:
        scale_q = tl.load(scale + step * 2)
        scale_k = tl.load(scale + step * 2 + 1)
    return b_x, b_q, b_dy, (scale_q, scale_k)


@triton.jit
@no_type_check
def load_shares(t, share, heads, row, D: tl.constexpr, SHARE: tl.constexpr):
    """The shares that the columns of y have in du, dk, dx and the gradients of the first rate and gate of one step."""
    share += t * heads * SHARE
    share_u = tl.load(share + row, mask=row < D, other=0.0)
    share_k = tl.load(share + D + row, mask=row < D, other=0.0)
    share_x = tl.load(share + 2 * D + row, mask=row < D, other=0.0)
    return share_u, share_k, share_x, tl.load(share + 3 * D), tl.load(share + SHARE - 1)


@triton.jit
@no_type_check
def write_again(
    w, difference, rate, keep, undone, k, limit, floor, jump, s,
    GATES: tl.constexpr, GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr
):  # fmt: skip
    """Write the update of step s into one part again, and say whether it was a jump."""
    if GATES > 0:
        w *= keep
    w += outer(k, rate * difference)
    limit, jump = find_jumps(tl.abs(difference), limit, jump, s, GROWTH)
    if GATES > 0:
        gone = undone > MOST_DECAY
        limit = limits_anew(limit, floor, difference, gone, GROWTH, MOST_DECAY)
        jump = tl.where(gone, s, jump)
    return w, limit, jump


@triton.jit
@no_type_check
def matrix_before(
    base_step, t, base, weight, state, segment, checkpoints, k, beta, difference, interval, heads, place, zero,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, GATES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr,
    GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr,
):  # fmt: skip
    """The matrix before step t, from where an interval or episode begins with `base_step`; and the last jump."""
    LAST: tl.constexpr = RATES + GATES
    M: tl.constexpr = OUT + 2 * D + LAST
    _, col_y, col, col_b, _ = place
    is_reset = base_step < 0
    if HAS_RESET:
        is_reset = tl.load(segment + t) == base_step
    if (base_step == 0) | is_reset:
        if GATES > 0:
            matrix = zero
        else:
            matrix = add_matrix(weight, place, zero, D, OUT, LAST, CORE, READ)
        if HAS_STATE:
            if not is_reset:
                matrix = add_matrix(state, place, matrix, D, OUT, LAST, CORE, READ)
    else:
        stored = checkpoints + (base_step // interval - 1) * D * M
        matrix = add_matrix(stored, place, zero, D, OUT, LAST, CORE, READ)
    if GATES > 0:
        floors = limits_of(base, GROWTH)
        limit_y, limit_q, limit_k, limit_b = limits_of(sum_of(base, matrix), GROWTH)
    else:
        limit_y, limit_q, limit_k, limit_b = limits_of(matrix, GROWTH)
        # Nobody looks.
        floors = (limit_y, limit_q, limit_k, limit_b)
    w_y, w_q, w_k, w_b = matrix
    jump_y = tl.full(col_y.shape, -1, tl.int32)
    jump_q = tl.full(col.shape, -1, tl.int32)
    jump_k = jump_q
    jump_b = tl.full(col_b.shape, -1, tl.int32)
    undone_y = tl.full([], 1.0, ACC)
    undone = tl.full([], 1.0, ACC)
    next_k, next_rates, next_d, next_forget = load_update(
        base_step, k, beta, difference, heads, place, D, OUT, RATES, GATES, CORE, READ
    )
    for s in range(base_step, t):
        b_k = next_k
        rate_y, rate_q, rate_k, rate_b = next_rates
        d_y, d_q, d_k, d_b = next_d
        forget_y, forget = next_forget
        next_k, next_rates, next_d, next_forget = load_update(
            s + 1, k, beta, difference, heads, place, D, OUT, RATES, GATES, CORE, READ
        )
        keep_y = 1 - forget_y
        keep = 1 - forget
        if GATES > 0:
            undone_y = undone_y / keep_y
            undone = undone / keep
        if READ:
            w_y, limit_y, jump_y = write_again(
                w_y, d_y, rate_y, keep_y, undone_y, b_k, limit_y, floors[0], jump_y, s, GATES, GROWTH, MOST_DECAY
            )
        if CORE:
            w_q, limit_q, jump_q = write_again(
                w_q, d_q, rate_q, keep, undone, b_k, limit_q, floors[1], jump_q, s, GATES, GROWTH, MOST_DECAY
            )
            w_k, limit_k, jump_k = write_again(
                w_k, d_k, rate_k, keep, undone, b_k, limit_k, floors[2], jump_k, s, GATES, GROWTH, MOST_DECAY
            )
            w_b, limit_b, jump_b = write_again(
                w_b, d_b, rate_b, keep, undone, b_k, limit_b, floors[3], jump_b, s, GATES, GROWTH, MOST_DECAY
            )
        if GATES > 0:
            undone_y = tl.where(undone_y > MOST_DECAY, 1.0, undone_y)
            undone = tl.where(undone > MOST_DECAY, 1.0, undone)
    return (w_y, w_q, w_k, w_b), last_jump(jump_y, tl.maximum(jump_q, jump_k), jump_b, CORE, READ)
