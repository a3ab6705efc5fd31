"""The backward kernel: it undoes updates and gathers the gradients, from the last step to the first."""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import (
    any_jump,
    dot_rows,
    dot_share,
    find_jumps,
    from_lanes,
    mat_vec_share,
    outer,
    rows,
    sum_both,
    sum_four,
    vec_mat,
    zeros,
)
from ._matrix import add_matrix, last_jump, limits_of, store_matrix


@triton.jit
@no_type_check
def _load_update(
    t, k, beta, difference, heads, place,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
):  # fmt: skip
    """What one step wrote, and under which key; parts that are not run are loaded as zeros."""
    M: tl.constexpr = OUT + 2 * D + RATES
    row, col_y, col, col_b, _ = place
    step = t * heads
    b_k = tl.load(k + step * D + row, mask=row < D, other=0.0)
    rate_y = tl.load(beta + step * RATES)
    rate_q = tl.load(beta + step * RATES + 1 % RATES)
    rate_k = tl.load(beta + step * RATES + 2 % RATES)
    rate_b = tl.load(beta + step * RATES + 3 % RATES)
    difference += step * M
    d_y = tl.load(difference + col_y, mask=(col_y < OUT) & READ, other=0.0)
    d_q = tl.load(difference + OUT + col, mask=(col < D) & CORE, other=0.0)
    d_k = tl.load(difference + OUT + D + col, mask=(col < D) & CORE, other=0.0)
    d_b = tl.load(difference + OUT + 2 * D + col_b, mask=(col_b < RATES) & CORE, other=0.0)
    return b_k, rate_y, rate_q, rate_k, rate_b, d_y, d_q, d_k, d_b


@triton.jit
@no_type_check
def _load_inputs(
    t, dy, x, q, heads, place, D: tl.constexpr, OUT: tl.constexpr, READ: tl.constexpr
):  # fmt: skip
    """What else the backward pass reads of one step."""
    row, col_y, _, _, _ = place
    step = t * heads
    b_x = tl.load(x + step * D + row, mask=row < D, other=0.0)
    b_q = tl.load(q + step * D + row, mask=row < D, other=0.0)
    b_dy = tl.load(dy + step * OUT + col_y, mask=(col_y < OUT) & READ, other=0.0)
    return b_x, b_q, b_dy


@triton.jit
@no_type_check
def _load_shares(t, share, heads, row, D: tl.constexpr):
    """The shares that the columns of y have in du, dk, dx and the gradient of the first rate of one step."""
    share += t * heads * (3 * D + 1)
    share_u = tl.load(share + row, mask=row < D, other=0.0)
    share_k = tl.load(share + D + row, mask=row < D, other=0.0)
    share_x = tl.load(share + 2 * D + row, mask=row < D, other=0.0)
    return share_u, share_k, share_x, tl.load(share + 3 * D)


@triton.jit
@no_type_check
def _undo(
    w, g, g_end, difference, rate, k, u, dk, du, is_undone, NB: tl.constexpr, JUMPS: tl.constexpr, HAS_END: tl.constexpr
):
    """Undo the update of one part, and pass its gradient on to what it was made of; dk, du are shares of sums.

    The gradient is g, or g + g_end; what the update adds to it goes to g. Where something jumps, w may be the matrix
    before the update already.
    """
    write = rate * difference
    w -= outer(k, tl.where(is_undone, 0.0, write) if JUMPS else write)
    whole = g
    if HAS_END:
        whole = g + g_end
    kg = vec_mat(k, whole)
    dk += mat_vec_share(whole, write, NB)
    d_difference = rate * kg
    du += mat_vec_share(w, d_difference, NB)
    g += outer(u, d_difference)
    return w, g, dk, du, dot_share(kg, difference, NB)


@triton.jit
@no_type_check
def _write_again(
    base, t, weight, state, segment, checkpoints, k, beta, difference, interval, heads, place, zero,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
    HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, GROWTH: tl.constexpr,
):  # fmt: skip
    """The matrix before step t, from where an interval or an episode begins with step `base`; and the last jump."""
    M: tl.constexpr = OUT + 2 * D + RATES
    _, col_y, col, col_b, _ = place
    is_reset = base < 0
    if HAS_RESET:
        is_reset = tl.load(segment + t) == base
    if (base == 0) | is_reset:
        matrix = add_matrix(weight, place, zero, D, OUT, RATES, CORE, READ)
        if HAS_STATE:
            if not is_reset:
                matrix = add_matrix(state, place, matrix, D, OUT, RATES, CORE, READ)
    else:
        stored = checkpoints + (base // interval - 1) * D * M
        matrix = add_matrix(stored, place, zero, D, OUT, RATES, CORE, READ)
    w_y, w_q, w_k, w_b = matrix
    limit_y, limit_q, limit_k, limit_b = limits_of(matrix, GROWTH)
    jump_y = tl.full(col_y.shape, -1, tl.int32)
    jump_q = tl.full(col.shape, -1, tl.int32)
    jump_k = jump_q
    jump_b = tl.full(col_b.shape, -1, tl.int32)
    next_k, next_ry, next_rq, next_rk, next_rb, next_d_y, next_d_q, next_d_k, next_d_b = _load_update(
        base, k, beta, difference, heads, place, D, OUT, RATES, CORE, READ
    )
    for s in range(base, t):
        b_k = next_k
        rate_y = next_ry
        rate_q = next_rq
        rate_k = next_rk
        rate_b = next_rb
        d_y = next_d_y
        d_q = next_d_q
        d_k = next_d_k
        d_b = next_d_b
        next_k, next_ry, next_rq, next_rk, next_rb, next_d_y, next_d_q, next_d_k, next_d_b = _load_update(
            s + 1, k, beta, difference, heads, place, D, OUT, RATES, CORE, READ
        )
        if READ:
            w_y += outer(b_k, rate_y * d_y)
            limit_y, jump_y = find_jumps(tl.abs(d_y), limit_y, jump_y, s, GROWTH)
        if CORE:
            w_q += outer(b_k, rate_q * d_q)
            w_k += outer(b_k, rate_k * d_k)
            w_b += outer(b_k, rate_b * d_b)
            limit_q, jump_q = find_jumps(tl.abs(d_q), limit_q, jump_q, s, GROWTH)
            limit_k, jump_k = find_jumps(tl.abs(d_k), limit_k, jump_k, s, GROWTH)
            limit_b, jump_b = find_jumps(tl.abs(d_b), limit_b, jump_b, s, GROWTH)
    return (w_y, w_q, w_k, w_b), last_jump(jump_y, tl.maximum(jump_q, jump_k), jump_b, CORE, READ)


@triton.jit
@no_type_check
def _steps_back(
    matrix, gradient, end_gradient, t, last, written, dy, x, q, k, beta, difference, share, dx, heads, place,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr,
    ROWS: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_END: tl.constexpr, JUMPS: tl.constexpr,
):  # fmt: skip
    """Go back from step t to step `last`, undoing each; `matrix` is from after step t or, if `written`, before it."""
    SHARE: tl.constexpr = 3 * D + 1
    w_y, w_q, w_k, w_b = matrix
    g_y, g_q, g_k, g_b = gradient
    end_y, end_q, end_k, end_b = end_gradient
    row, _, _, col_b, _ = place
    lane = tl.arange(0, LANES)
    in_row = row < D
    zero_b = zeros(row, NB, ACC)

    next_x, next_q, next_dy = _load_inputs(t, dy, x, q, heads, place, D, OUT, READ)
    next_k, next_ry, next_rq, next_rk, next_rb, next_d_y, next_d_q, next_d_k, next_d_b = _load_update(
        t, k, beta, difference, heads, place, D, OUT, RATES, CORE, READ
    )
    if CORE and not READ:
        next_share_u, next_share_k, next_share_x, next_share_b = _load_shares(t, share, heads, row, D)
    for i in range(t - last + 1):
        here = (t - i) * heads
        b_x = next_x.to(ACC)
        b_q = next_q
        b_dy = next_dy.to(ACC)
        b_k = next_k
        rate_y = next_ry
        rate_q = next_rq
        rate_k = next_rk
        rate_b = next_rb
        d_y = next_d_y
        d_q = next_d_q
        d_k = next_d_k
        d_b = next_d_b
        if CORE and not READ:
            share_u = next_share_u
            share_k = next_share_k
            share_x = next_share_x
            share_b = next_share_b
        t_next = tl.maximum(t - i - 1, 0)
        next_x, next_q, next_dy = _load_inputs(t_next, dy, x, q, heads, place, D, OUT, READ)
        next_k, next_ry, next_rq, next_rk, next_rb, next_d_y, next_d_q, next_d_k, next_d_b = _load_update(
            t_next, k, beta, difference, heads, place, D, OUT, RATES, CORE, READ
        )
        if CORE and not READ:
            next_share_u, next_share_k, next_share_x, next_share_b = _load_shares(t_next, share, heads, row, D)
        u = b_q - b_k

        # What was written again is the matrix before this step already.
        is_undone = written & (i == 0)
        # Shares of the sums over columns: of dk, du, dx, and of the gradients of the four rates.
        dk = zero_b
        du = zero_b
        dx_share = zero_b
        a_y = tl.zeros([NB], ACC)
        if READ:
            w_y, g_y, dk, du, a_y = _undo(w_y, g_y, end_y, d_y, rate_y, b_k, u, dk, du, is_undone, NB, JUMPS, HAS_END)
            dx_share += mat_vec_share(w_y, b_dy, NB)
            g_y += outer(b_x, b_dy)
        if CORE:
            w_q, g_q, dk, du, a_q = _undo(w_q, g_q, end_q, d_q, rate_q, b_k, u, dk, du, is_undone, NB, JUMPS, HAS_END)
            w_k, g_k, dk, du, a_k = _undo(w_k, g_k, end_k, d_k, rate_k, b_k, u, dk, du, is_undone, NB, JUMPS, HAS_END)
            w_b, g_b, dk, du, a_b = _undo(w_b, g_b, end_b, d_b, rate_b, b_k, u, dk, du, is_undone, NB, JUMPS, HAS_END)

        row_dk, row_du = sum_both(dk, du)
        if CORE:
            # One lane for each learning rate; a shared one gathers all four.
            d_rate = tl.where(lane < 4, sum_four(a_y, a_q, a_k, a_b, lane), 0.0)
            if RATES == 1:
                d_rate = tl.where(lane == 0, tl.sum(d_rate, axis=0), 0.0)
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
            z_b = from_lanes(d_rate, lane, col_b)
            dx_share += mat_vec_share(w_q, z_q, NB) + mat_vec_share(w_k, z_k, NB) + mat_vec_share(w_b, z_b, NB)
            g_q += outer(b_x, z_q)
            g_k += outer(b_x, z_k)
            g_b += outer(b_x, z_b)
        row_dx = tl.sum(dx_share, axis=1)
        if CORE:
            if not READ:
                row_dx += share_x
            tl.store(dx + here * D + row, row_dx, mask=in_row)
        else:
            tl.store(share + here * SHARE + row, row_du, mask=in_row)
            tl.store(share + here * SHARE + D + row, row_dk, mask=in_row)
            tl.store(share + here * SHARE + 2 * D + row, row_dx, mask=in_row)
            tl.store(share + here * SHARE + 3 * D, tl.sum(a_y, axis=0))
    return (w_y, w_q, w_k, w_b), (g_y, g_q, g_k, g_b)


@triton.jit
@no_type_check
def _go_back(
    dy, dend, x, weight, state, segment, end, q, k, beta, difference, checkpoints, jumps, share, dx, dstate, dweight,
    steps, heads, place, interval, intervals, never,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, HAS_END: tl.constexpr,
    GROWTH: tl.constexpr, JUMPS: tl.constexpr,
):  # fmt: skip
    """Go back through the whole sequence, which may have jumps or resets only if `JUMPS`."""
    M: tl.constexpr = OUT + 2 * D + RATES
    row = place[0]
    # `matrix` starts from the end of the sequence. The gradient of the loss with respect to it is `gradient` plus that
    # of the end state: apart, because what reaches `weight` may be far smaller than the latter.
    zero = (zeros(row, BLOCK, ACC), zeros(row, ROWS, ACC), zeros(row, ROWS, ACC), zeros(row, NB, ACC))
    matrix = add_matrix(weight, place, zero, D, OUT, RATES, CORE, READ)
    matrix = add_matrix(end, place, matrix, D, OUT, RATES, CORE, READ)
    end_gradient = add_matrix(dend, place, zero, D, OUT, RATES, CORE, READ)
    # Zeros, but the compiler must not know it: it lays a tile out by where it comes from.
    gradient = (
        tl.where(never != 0, end_gradient[0], 0.0), tl.where(never != 0, end_gradient[1], 0.0),
        tl.where(never != 0, end_gradient[2], 0.0), tl.where(never != 0, end_gradient[3], 0.0),
    )  # fmt: skip
    for j in range(intervals):
        first_step = (intervals - 1 - j) * interval
        t = tl.minimum(first_step + interval, steps) - 1
        if j > 0:
            stored = checkpoints + (intervals - 1 - j) * D * M
            matrix = add_matrix(stored, place, zero, D, OUT, RATES, CORE, READ)
        if JUMPS:
            # The interval falls into stretches that can be undone in one go.
            at_hand = t >= 0
            for _ in range(interval):
                # A loop that ends here would be laid out anew by the compiler; this one runs empty.
                if t >= first_step:
                    jump = tl.load(jumps + intervals - 1 - j)
                    base = first_step
                    if HAS_RESET:
                        base = tl.maximum(base, tl.load(segment + t))
                    written = (t <= jump) | (not at_hand)
                    if written:
                        matrix, jump = _write_again(
                            base, t, weight, state, segment, checkpoints, k, beta, difference, interval, heads, place,
                            zero, D, OUT, RATES, CORE, READ, HAS_STATE, HAS_RESET, GROWTH,
                        )  # fmt: skip
                    last = tl.minimum(t, tl.maximum(base, jump + 1))
                    matrix, gradient = _steps_back(
                        matrix, gradient, end_gradient, t, last, written, dy, x, q, k, beta, difference, share, dx,
                        heads, place, D, OUT, RATES, ROWS, NB, LANES, ACC, CORE, READ, HAS_END, True,
                    )  # fmt: skip
                    if HAS_RESET:
                        # What stood before a reset is not at hand.
                        at_hand = tl.load(segment + last) != last
                        if not at_hand:
                            # Before this step the matrix was `weight` itself: the gradient goes there, no further back.
                            gradient = add_matrix(dweight, place, gradient, D, OUT, RATES, CORE, READ)
                            store_matrix(dweight, place, gradient, D, OUT, RATES, CORE, READ)
                            gradient = zero
                            if HAS_END:
                                end_gradient = zero
                    t = last - 1
        else:
            matrix, gradient = _steps_back(
                matrix, gradient, end_gradient, t, first_step, False, dy, x, q, k, beta, difference, share, dx, heads,
                place, D, OUT, RATES, ROWS, NB, LANES, ACC, CORE, READ, HAS_END, False,
            )  # fmt: skip

    if HAS_RESET:
        everything = add_matrix(dweight, place, gradient, D, OUT, RATES, CORE, READ)
        store_matrix(dweight, place, everything, D, OUT, RATES, CORE, READ)
    elif HAS_END:
        store_matrix(dweight, place, gradient, D, OUT, RATES, CORE, READ)
    if HAS_END:
        gradient = (
            gradient[0] + end_gradient[0], gradient[1] + end_gradient[1],
            gradient[2] + end_gradient[2], gradient[3] + end_gradient[3],
        )  # fmt: skip
    store_matrix(dstate, place, gradient, D, OUT, RATES, CORE, READ)


@triton.jit(do_not_specialize=["unit", "steps", "heads", "interval", "never"])
@no_type_check
def self_referential_bwd_kernel(
    dy, dend, x, weight, state, segment, end, q, k, beta, difference, checkpoints, jumps, share, dx, dstate, dweight,
    steps, heads, unit, interval, never,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, HAS_END: tl.constexpr,
    GROWTH: tl.constexpr,
):  # fmt: skip
    M: tl.constexpr = OUT + 2 * D + RATES
    SHARE: tl.constexpr = 3 * D + 1
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    col = tl.arange(0, ROWS)
    col_y = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col_b = tl.arange(0, NB)
    place = (row, col_y, col, col_b, unit)

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
    end += matrix
    dend += matrix
    state += matrix
    dstate += matrix
    dweight += matrix
    intervals = (steps + interval - 1) // interval
    checkpoints += head * (intervals - 1) * D * M
    jumps += head * intervals

    # A sequence without jumps has a loop for itself: the other one needs so many registers that none is left for speed.
    jumped = steps < 0
    if HAS_RESET:
        jumped = steps > 0
    else:
        jumped = any_jump(jumps, intervals)
    if jumped:
        _go_back(
            dy, dend, x, weight, state, segment, end, q, k, beta, difference, checkpoints, jumps, share, dx, dstate,
            dweight, steps, heads, place, interval, intervals, never, D, OUT, RATES, ROWS, BLOCK, NB, LANES, ACC,
            CORE, READ, HAS_STATE, HAS_RESET, HAS_END, GROWTH, True,
        )  # fmt: skip
    elif not HAS_RESET:
        _go_back(
            dy, dend, x, weight, state, segment, end, q, k, beta, difference, checkpoints, jumps, share, dx, dstate,
            dweight, steps, heads, place, interval, intervals, never, D, OUT, RATES, ROWS, BLOCK, NB, LANES, ACC,
            CORE, READ, HAS_STATE, HAS_RESET, HAS_END, GROWTH, False,
        )  # fmt: skip
