"""The backward kernel: it undoes updates and gathers the gradients, from the last step to the first."""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import (
    any_jump,
    dot_rows,
    dot_share,
    from_lanes,
    mat_mat_share,
    mat_vec_share,
    outer,
    rows,
    sum_both,
    sum_four,
    sum_rows,
    sum_six,
    through_clip,
    vec_mat,
    zeros,
)
from ._matrix import add_matrix, store_matrix, sum_of, zero_matrix
from ._replay import load_inputs, load_shares, load_update, matrix_before


@triton.jit
@no_type_check
def _undo(
    w, base, g, g_end, to_weight, forgotten, difference, rate, forget, kept, k, u, dk, du, is_undone,
    GATES: tl.constexpr, CLIP: tl.constexpr, NB: tl.constexpr,
    JUMPS: tl.constexpr, HAS_END: tl.constexpr,
):  # fmt: skip
    """Undo the update of one part, and pass its gradient on to what it was made of; dk, du are shares of sums.

    Without gates, w is the matrix, and the gradient is g, or g + g_end; what the update adds to it goes to g.

    With gates, the change of the matrix is w / kept, and its gradient g kept, where `kept` is the product of what the
    steps undone so far had kept: so no step needs to multiply a tile. Gathered in `forgotten` is the share of the
    gradient of what was kept, but for a factor. `to_weight` gathers the gradient of `base`: what the updates add to g
    or, without a gradient of the end state, what is forgotten of g, from which the former follows (see `_go_back`).

    Where something jumps, w may be from before the update already. Returned with the rest are the whole matrix before
    the update and the share of the gradient of the rate.
    """
    whole_g = g
    if GATES > 0:
        rate *= kept
        kept_before = kept * (1 - forget)
        if JUMPS:
            kept_before = tl.where(is_undone, kept, kept_before)
    elif HAS_END:
        whole_g = g + g_end
    write = rate * difference
    w -= outer(k, tl.where(is_undone, 0.0, write) if JUMPS else write)
    kg = vec_mat(k, whole_g)
    dk += mat_vec_share(whole_g, write, NB)
    d_difference = through_clip(rate * kg, difference, CLIP)
    d_rate = dot_share(kg, difference, NB)
    if GATES > 0:
        undone = 1 / kept_before
        whole_w = base + w * undone
        forgotten += mat_mat_share(g, w, NB)
        d_rate *= kept
        if HAS_END:
            to_weight += outer(u, d_difference)
        else:
            to_weight += (forget * kept) * g
        if JUMPS:
            g *= tl.where(is_undone, 1 - forget, 1.0)
        g += outer(u * undone, d_difference)
    else:
        whole_w = w
        g += outer(u, d_difference)
    du += mat_vec_share(whole_w, d_difference, NB)
    return w, whole_w, g, to_weight, forgotten, dk, du, d_rate


@triton.jit
@no_type_check
def _add(g, to_weight, x, dz, undone, GATES: tl.constexpr, HAS_END: tl.constexpr):
    """Add the gradient of what one part put out to that of its matrix, which is g / undone (see `_undo`)."""
    if GATES > 0:
        if HAS_END:
            to_weight += outer(x, dz)
        x *= undone
    g += outer(x, dz)
    return g, to_weight


@triton.jit
@no_type_check
def _steps_back(
    matrix, base, gradient, end_gradient, to_weight, t, last, written, dy, x, q, k, beta, scale, difference, share, dx,
    heads, place,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, GATES: tl.constexpr, L2_EPS: tl.constexpr,
    FORGET_MIN: tl.constexpr, FORGET_RANGE: tl.constexpr, CLIP: tl.constexpr,
    ROWS: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_END: tl.constexpr, JUMPS: tl.constexpr,
):  # fmt: skip
    """Go back from step t to step `last`, undoing each; `matrix` is from after step t or, if `written`, before it."""
    SHARE: tl.constexpr = 3 * D + 1 + (1 if GATES > 0 else 0)
    SLOTS: tl.constexpr = 8 if GATES > 0 and LANES < 8 else LANES
    w_y, w_q, w_k, w_b = matrix
    base_y, base_q, base_k, base_b = base
    g_y, g_q, g_k, g_b = gradient
    end_y, end_q, end_k, end_b = end_gradient
    to_y, to_q, to_k, to_b = to_weight
    row, _, _, col_b, _ = place
    lane = tl.arange(0, SLOTS)
    in_row = row < D
    zero_b = zeros(row, NB, ACC)
    kept_y = tl.full([], 1.0, ACC)
    kept = tl.full([], 1.0, ACC)

    next_x, next_q, next_dy, next_scale = load_inputs(t, dy, x, q, scale, heads, place, D, OUT, CORE, READ, L2_EPS)
    next_k, next_rates, next_d, next_forget = load_update(
        t, k, beta, difference, heads, place, D, OUT, RATES, GATES, CORE, READ
    )
    if CORE and not READ:
        next_shares = load_shares(t, share, heads, row, D, SHARE)
    for i in range(t - last + 1):
        here = (t - i) * heads
        b_x = next_x.to(ACC)
        b_q = next_q
        b_dy = next_dy.to(ACC)
        b_k = next_k
        scale_q, scale_k = next_scale
        rate_y, rate_q, rate_k, rate_b = next_rates
        d_y, d_q, d_k, d_b = next_d
        forget_y, forget = next_forget
        if CORE and not READ:
            share_u, share_k, share_x, share_b, share_f = next_shares
        t_next = tl.maximum(t - i - 1, 0)
        next_x, next_q, next_dy, next_scale = load_inputs(
            t_next, dy, x, q, scale, heads, place, D, OUT, CORE, READ, L2_EPS
        )
        next_k, next_rates, next_d, next_forget = load_update(
            t_next, k, beta, difference, heads, place, D, OUT, RATES, GATES, CORE, READ
        )
        if CORE and not READ:
            next_shares = load_shares(t_next, share, heads, row, D, SHARE)
        u = b_q - b_k

        # What was written again is the matrix before this step already.
        is_undone = written & (i == 0)
        # Shares of the sums over columns: of dk, du, dx, and of the gradients of the four rates and two gates.
        dk = zero_b
        du = zero_b
        dx_share = zero_b
        forgotten_y = zero_b
        forgotten = zero_b
        a_y = tl.zeros([NB], ACC)
        if READ:
            w_y, whole_y, g_y, to_y, forgotten_y, dk, du, a_y = _undo(
                w_y, base_y, g_y, end_y, to_y, forgotten_y, d_y, rate_y, forget_y, kept_y, b_k, u, dk, du, is_undone,
                GATES, CLIP, NB, JUMPS, HAS_END,
            )  # fmt: skip
        if CORE:
            w_q, whole_q, g_q, to_q, forgotten, dk, du, a_q = _undo(
                w_q, base_q, g_q, end_q, to_q, forgotten, d_q, rate_q, forget, kept, b_k, u, dk, du, is_undone,
                GATES, CLIP, NB, JUMPS, HAS_END,
            )  # fmt: skip
            w_k, whole_k, g_k, to_k, forgotten, dk, du, a_k = _undo(
                w_k, base_k, g_k, end_k, to_k, forgotten, d_k, rate_k, forget, kept, b_k, u, dk, du, is_undone,
                GATES, CLIP, NB, JUMPS, HAS_END,
            )  # fmt: skip
            w_b, whole_b, g_b, to_b, forgotten, dk, du, a_b = _undo(
                w_b, base_b, g_b, end_b, to_b, forgotten, d_b, rate_b, forget, kept, b_k, u, dk, du, is_undone,
                GATES, CLIP, NB, JUMPS, HAS_END,
            )  # fmt: skip

        # From here on, what the steps undone so far kept includes this one; so do w and g.
        undone_y = tl.full([], 1.0, ACC)
        undone = tl.full([], 1.0, ACC)
        to_forgotten_y = undone_y
        to_forgotten = undone
        if GATES > 0:
            to_forgotten_y = 1 / (1 - forget_y)
            to_forgotten = 1 / (1 - forget)
            if JUMPS:
                to_forgotten_y = tl.where(is_undone, 1.0, to_forgotten_y)
                to_forgotten = tl.where(is_undone, 1.0, to_forgotten)
                kept_y *= tl.where(is_undone, 1.0, 1 - forget_y)
                kept *= tl.where(is_undone, 1.0, 1 - forget)
            else:
                kept_y *= 1 - forget_y
                kept *= 1 - forget
            undone_y = 1 / kept_y
            undone = 1 / kept
        if READ:
            dx_share += mat_vec_share(whole_y, b_dy, NB)
            g_y, to_y = _add(g_y, to_y, b_x, b_dy, undone_y, GATES, HAS_END)

        row_dk, row_du = sum_both(dk, du)
        if CORE:
            # One lane for each learning rate; a shared one gathers all four. Lanes 4 and 5 are those of the gates.
            rate = tl.where(lane < 2, tl.where(lane == 0, rate_y, rate_q), tl.where(lane == 2, rate_k, rate_b))
            if GATES > 0:
                a_f_y = sum_rows(forgotten_y) * to_forgotten_y
                a_f = sum_rows(forgotten) * to_forgotten
                if GATES == 1:
                    a_f += a_f_y
                d_rate = sum_six(a_y, a_q, a_k, a_b, a_f if GATES == 1 else a_f_y, a_f, lane)
                if not READ:
                    d_rate += tl.where(lane == 0, share_b, 0.0) + tl.where(lane == 4, share_f, 0.0)
                b_forget = tl.where(lane == 4, forget_y, forget)
                # What is kept falls as the gate opens. Where the range is empty, nothing depends on the gate.
                if FORGET_RANGE > 0:
                    open_share = (b_forget - FORGET_MIN) / FORGET_RANGE
                    d_gate = -d_rate * FORGET_RANGE * open_share * (1 - open_share)
                else:
                    d_gate = tl.zeros_like(d_rate)
                d_gate = tl.where((lane >= 4) & (lane < 4 + GATES), d_gate, 0.0)
                d_rate = tl.where(lane < 4, d_rate, 0.0)
            else:
                d_rate = tl.where(lane < 4, sum_four(a_y, a_q, a_k, a_b, lane), 0.0)
            if RATES == 1:
                d_rate = tl.where(lane == 0, tl.sum(d_rate, axis=0), 0.0)
            if not READ:
                row_du += share_u
                row_dk += share_k
                if GATES == 0:
                    d_rate += tl.where(lane == 0, share_b, 0.0)
            d_rate = d_rate * rate * (1 - rate)
            if GATES > 0:
                d_rate += d_gate
            # Through the key map and the sigmoids, back to what the matrix put out as q, k and beta.
            row_dk -= row_du
            if L2_EPS is None:
                z_q = b_q * (row_du - dot_rows(row_du, b_q))
                z_k = b_k * (row_dk - dot_rows(row_dk, b_k))
            else:
                z_q = scale_q * (row_du - b_q * dot_rows(row_du, b_q))
                z_k = scale_k * (row_dk - b_k * dot_rows(row_dk, b_k))
            z_q = tl.reshape(z_q, [ROWS])
            z_k = tl.reshape(z_k, [ROWS])
            if GATES > 0:
                slot = tl.where(col_b < RATES, col_b, 4 + col_b - RATES)
                z_b = from_lanes(d_rate, lane, tl.where(col_b < RATES + GATES, slot, SLOTS))
            else:
                z_b = from_lanes(d_rate, lane, col_b)
            dx_share += mat_vec_share(whole_q, z_q, NB) + mat_vec_share(whole_k, z_k, NB)
            dx_share += mat_vec_share(whole_b, z_b, NB)
            g_q, to_q = _add(g_q, to_q, b_x, z_q, undone, GATES, HAS_END)
            g_k, to_k = _add(g_k, to_k, b_x, z_k, undone, GATES, HAS_END)
            g_b, to_b = _add(g_b, to_b, b_x, z_b, undone, GATES, HAS_END)
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
            if GATES > 0:
                tl.store(share + here * SHARE + 3 * D + 1, tl.sum(sum_rows(forgotten_y), axis=0) * to_forgotten_y)
    if GATES > 0:
        # Nobody goes on from the matrix: it is loaded or written again.
        g_y *= kept_y
        g_q *= kept
        g_k *= kept
        g_b *= kept
    return (w_y, w_q, w_k, w_b), (g_y, g_q, g_k, g_b), (to_y, to_q, to_k, to_b)


@triton.jit
@no_type_check
def _go_back(
    dy, dend, x, weight, state, segment, end, q, k, beta, scale, difference, checkpoints, jumps, share, dx, dstate,
    dweight, steps, heads, place, interval, intervals, never,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, GATES: tl.constexpr, L2_EPS: tl.constexpr,
    FORGET_MIN: tl.constexpr, FORGET_RANGE: tl.constexpr, CLIP: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE_B: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr,
    ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, HAS_END: tl.constexpr,
    GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr, JUMPS: tl.constexpr,
):  # fmt: skip
    """Go back through the whole sequence, which may have jumps or resets only if `JUMPS`."""
    LAST: tl.constexpr = RATES + GATES
    M: tl.constexpr = OUT + 2 * D + LAST
    row = place[0]
    # `matrix` starts from the end of the sequence. Without gates, the gradient of the loss with respect to it is
    # `gradient` plus that of the end state: apart, because what reaches `weight` may be far smaller than the latter.
    # With gates, `matrix` is the change, and `gradient` that of the loss with respect to it. A step with the gate f
    # makes g + A - f g of the gradient g, and A is what reaches `weight`. It is gathered in `to_weight` or, without a
    # gradient of the end state, f g is, which is cheaper: all the A are then `gradient` and that.
    zero = zero_matrix(row, BLOCK, ROWS, WIDE_B, ACC)
    base = add_matrix(weight, place, zero, D, OUT, LAST, CORE, READ)
    matrix = add_matrix(end, place, zero if GATES > 0 else base, D, OUT, LAST, CORE, READ)
    end_gradient = add_matrix(dend, place, zero, D, OUT, LAST, CORE, READ)
    # Zeros, but the compiler must not know it: it lays a tile out by where it comes from.
    gradient = (
        tl.where(never != 0, end_gradient[0], 0.0), tl.where(never != 0, end_gradient[1], 0.0),
        tl.where(never != 0, end_gradient[2], 0.0), tl.where(never != 0, end_gradient[3], 0.0),
    )  # fmt: skip
    to_weight = gradient
    if HAS_END and GATES > 0:
        gradient = end_gradient
    for j in range(intervals):
        first_step = (intervals - 1 - j) * interval
        t = tl.minimum(first_step + interval, steps) - 1
        if j > 0:
            stored = checkpoints + (intervals - 1 - j) * D * M
            matrix = add_matrix(stored, place, zero, D, OUT, LAST, CORE, READ)
        if JUMPS:
            # The interval falls into stretches that can be undone in one go.
            at_hand = t >= 0
            for _ in range(interval):
                # A loop that ends here would be laid out anew by the compiler; this one runs empty.
                if t >= first_step:
                    jump = tl.load(jumps + intervals - 1 - j)
                    base_step = first_step
                    if HAS_RESET:
                        base_step = tl.maximum(base_step, tl.load(segment + t))
                    written = (t <= jump) | (not at_hand)
                    if written:
                        matrix, jump = matrix_before(
                            base_step, t, base, weight, state, segment, checkpoints, k, beta, difference, interval,
                            heads, place, zero, D, OUT, RATES, GATES, ACC, CORE, READ, HAS_STATE, HAS_RESET, GROWTH,
                            MOST_DECAY,
                        )  # fmt: skip
                    last = tl.minimum(t, tl.maximum(base_step, jump + 1))
                    matrix, gradient, to_weight = _steps_back(
                        matrix, base, gradient, end_gradient, to_weight, t, last, written, dy, x, q, k, beta, scale,
                        difference, share, dx, heads, place, D, OUT, RATES, GATES, L2_EPS, FORGET_MIN, FORGET_RANGE,
                        CLIP, ROWS, NB, LANES, ACC, CORE, READ, HAS_END, True,
                    )  # fmt: skip
                    if HAS_RESET:
                        # What stood before a reset is not at hand.
                        at_hand = tl.load(segment + last) != last
                        if not at_hand:
                            # Before this step the matrix was `weight` itself: the gradient goes there, no further back.
                            if GATES == 0:
                                gradient = add_matrix(dweight, place, gradient, D, OUT, LAST, CORE, READ)
                                store_matrix(dweight, place, gradient, D, OUT, LAST, CORE, READ)
                            elif not HAS_END:
                                to_weight = sum_of(to_weight, gradient)
                            gradient = zero
                            if HAS_END and GATES == 0:
                                end_gradient = zero
                    t = last - 1
        else:
            matrix, gradient, to_weight = _steps_back(
                matrix, base, gradient, end_gradient, to_weight, t, first_step, False, dy, x, q, k, beta, scale,
                difference, share, dx, heads, place, D, OUT, RATES, GATES, L2_EPS, FORGET_MIN, FORGET_RANGE, CLIP,
                ROWS, NB, LANES, ACC, CORE, READ, HAS_END, False,
            )  # fmt: skip

    if GATES > 0:
        if not HAS_END:
            to_weight = sum_of(to_weight, gradient)
        store_matrix(dweight, place, to_weight, D, OUT, LAST, CORE, READ)
    else:
        if HAS_RESET:
            everything = add_matrix(dweight, place, gradient, D, OUT, LAST, CORE, READ)
            store_matrix(dweight, place, everything, D, OUT, LAST, CORE, READ)
        elif HAS_END:
            store_matrix(dweight, place, gradient, D, OUT, LAST, CORE, READ)
        if HAS_END:
            gradient = sum_of(gradient, end_gradient)
    store_matrix(dstate, place, gradient, D, OUT, LAST, CORE, READ)


@triton.jit(do_not_specialize=["unit", "steps", "heads", "interval", "never"])
@no_type_check
def self_referential_bwd_kernel(
    dy, dend, x, weight, state, segment, end, q, k, beta, scale, difference, checkpoints, jumps, share, dx, dstate,
    dweight, steps, heads, unit, interval, never,
    D: tl.constexpr, OUT: tl.constexpr, RATES: tl.constexpr, GATES: tl.constexpr, L2_EPS: tl.constexpr,
    FORGET_MIN: tl.constexpr, FORGET_RANGE: tl.constexpr, FORGET_BIAS: tl.constexpr, CLIP: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE_B: tl.constexpr, NB: tl.constexpr, LANES: tl.constexpr,
    ACC: tl.constexpr,
    CORE: tl.constexpr, READ: tl.constexpr, HAS_STATE: tl.constexpr, HAS_RESET: tl.constexpr, HAS_END: tl.constexpr,
    GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr,
):  # fmt: skip
    LAST: tl.constexpr = RATES + GATES
    M: tl.constexpr = OUT + 2 * D + LAST
    SHARE: tl.constexpr = 3 * D + 1 + (1 if GATES > 0 else 0)
    head = tl.program_id(0).to(tl.int64)
    heads = heads.to(tl.int64)
    row = rows(ROWS, LANES)
    col = tl.arange(0, ROWS)
    col_y = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col_b = tl.arange(0, WIDE_B)
    place = (row, col_y, col, col_b, unit)

    first = (head // heads) * steps * heads + head % heads
    dy += first * OUT
    x += first * D
    q += first * D
    k += first * D
    beta += first * LAST
    scale += first * 2
    difference += first * M
    dx += first * D
    # The blocks of y hand over their shares side by side: [blocks, b, t, h, du | dk | dx | drate | dgate].
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
            dy, dend, x, weight, state, segment, end, q, k, beta, scale, difference, checkpoints, jumps, share, dx,
            dstate, dweight, steps, heads, place, interval, intervals, never, D, OUT, RATES, GATES, L2_EPS, FORGET_MIN,
            FORGET_RANGE, CLIP, ROWS, BLOCK, WIDE_B, NB, LANES, ACC, CORE, READ, HAS_STATE, HAS_RESET, HAS_END, GROWTH,
            MOST_DECAY, True,
        )  # fmt: skip
    elif not HAS_RESET:
        _go_back(
            dy, dend, x, weight, state, segment, end, q, k, beta, scale, difference, checkpoints, jumps, share, dx,
            dstate, dweight, steps, heads, place, interval, intervals, never, D, OUT, RATES, GATES, L2_EPS, FORGET_MIN,
            FORGET_RANGE, CLIP, ROWS, BLOCK, WIDE_B, NB, LANES, ACC, CORE, READ, HAS_STATE, HAS_RESET, HAS_END, GROWTH,
            MOST_DECAY, False,
        )  # fmt: skip
