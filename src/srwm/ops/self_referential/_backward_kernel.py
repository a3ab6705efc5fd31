"""The backward kernel: it undoes each update and gathers the gradients, from the last step to the first."""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import dot_rows, dot_share, from_lanes, mat_vec_share, outer, rows, sum_both, sum_four, vec_mat, zeros
from ._matrix import add_matrix, store_matrix


@triton.jit
@no_type_check
def _load_step(
    t, dy, x, q, k, beta, difference, heads, place,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
):  # fmt: skip
    """Everything the backward pass reads of one step; parts that are not run are loaded as zeros."""
    M: tl.constexpr = OUT + 2 * D + RATES
    row, col_y, col, col_b, _ = place
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


@triton.jit
@no_type_check
def _undo(w, g, difference, rate, k, u, dk, du, NB: tl.constexpr):
    """Undo the update of one part, and pass its gradient g on to what it was made of; dk, du are shares of sums."""
    write = rate * difference
    w -= outer(k, write)
    kg = vec_mat(k, g)
    dk += mat_vec_share(g, write, NB)
    d_difference = rate * kg
    du += mat_vec_share(w, d_difference, NB)
    g += outer(u, d_difference)
    return w, g, dk, du, dot_share(kg, difference, NB)


@triton.jit(do_not_specialize=["unit", "steps", "heads"])
@no_type_check
def self_referential_bwd_kernel(
    dy, dend, x, weight, state, segment, end, q, k, beta, difference, share, dx, dstate, dreset, steps, heads, unit,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr,
):  # fmt: skip
    M: tl.constexpr = OUT + 2 * D + RATES
    SHARE: tl.constexpr = 3 * D + 1
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    lane = tl.arange(0, LANES)
    col = tl.arange(0, ROWS)
    col_y = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col_b = tl.arange(0, NB)
    place = (row, col_y, col, col_b, unit)
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

    zero_y = zeros(row, BLOCK, ACC)
    zero = zeros(row, ROWS, ACC)
    zero_b = zeros(row, NB, ACC)
    # w is the matrix, g the gradient of the loss with respect to it; both start from the end of the sequence.
    w_y, w_q, w_k, w_b = add_matrix(weight, place, zero_y, zero, zero, zero_b, D, OUT, RATES, CORE, READ)
    w_y, w_q, w_k, w_b = add_matrix(end + matrix, place, w_y, w_q, w_k, w_b, D, OUT, RATES, CORE, READ)
    g_y, g_q, g_k, g_b = add_matrix(dend + matrix, place, zero_y, zero, zero, zero_b, D, OUT, RATES, CORE, READ)

    next_x, next_q, next_k, next_ry, next_rq, next_rk, next_rb, next_dy, next_d_y, next_d_q, next_d_k, next_d_b = (
        _load_step(steps - 1, dy, x, q, k, beta, difference, heads, place, D, OUT, RATES, CORE, READ)
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
            _load_step(tl.maximum(t - 1, 0), dy, x, q, k, beta, difference, heads, place, D, OUT, RATES, CORE, READ)
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

        # Shares of the sums over columns: of dk, du, dx, and of the gradients of the four rates.
        dk = zero_b
        du = zero_b
        dx_share = zero_b
        a_y = tl.zeros([NB], ACC)
        if READ:
            w_y, g_y, dk, du, a_y = _undo(w_y, g_y, d_y, rate_y, b_k, u, dk, du, NB)
            dx_share += mat_vec_share(w_y, b_dy, NB)
            g_y += outer(b_x, b_dy)
        if CORE:
            w_q, g_q, dk, du, a_q = _undo(w_q, g_q, d_q, rate_q, b_k, u, dk, du, NB)
            w_k, g_k, dk, du, a_k = _undo(w_k, g_k, d_k, rate_k, b_k, u, dk, du, NB)
            w_b, g_b, dk, du, a_b = _undo(w_b, g_b, d_b, rate_b, b_k, u, dk, du, NB)

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

        if HAS_RESET:
            if tl.load(segment + t) == t:
                # Before this step the matrix was `weight` itself: the gradient goes there and no further back.
                g_y, g_q, g_k, g_b = add_matrix(dreset + matrix, place, g_y, g_q, g_k, g_b, D, OUT, RATES, CORE, READ)
                store_matrix(dreset + matrix, place, g_y, g_q, g_k, g_b, D, OUT, RATES, CORE, READ)
                g_y = zero_y
                g_q = zero
                g_k = zero
                g_b = zero_b
                if t > 0:
                    # What stood before the reset is lost; write it again from the start of its segment.
                    start = tl.load(segment + t - 1)
                    w_y, w_q, w_k, w_b = add_matrix(
                        weight, place, zero_y, zero, zero, zero_b, D, OUT, RATES, CORE, READ
                    )
                    if HAS_STATE:
                        if start < 0:
                            w_y, w_q, w_k, w_b = add_matrix(
                                state + matrix, place, w_y, w_q, w_k, w_b, D, OUT, RATES, CORE, READ
                            )
                    for s in range(tl.maximum(start, 0), t):
                        _, _, s_k, s_ry, s_rq, s_rk, s_rb, _, s_d_y, s_d_q, s_d_k, s_d_b = _load_step(
                            s, dy, x, q, k, beta, difference, heads, place, D, OUT, RATES, CORE, READ
                        )
                        w_y += outer(s_k, s_ry * s_d_y)
                        w_q += outer(s_k, s_rq * s_d_q)
                        w_k += outer(s_k, s_rk * s_d_k)
                        w_b += outer(s_k, s_rb * s_d_b)

    store_matrix(dstate + matrix, place, g_y, g_q, g_k, g_b, D, OUT, RATES, CORE, READ)
