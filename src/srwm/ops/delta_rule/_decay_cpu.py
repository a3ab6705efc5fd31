"""The delta rule with a decay on CPU cores: how a matrix decays, and the way back; `cpu.py` has the rest.

Going back, the decay needs the product of the matrix and its gradient. So, unlike in `cpu.py`, both lie row by row.
"""

import numpy as np
from torch import Tensor

from .. import _checkpoints
from .._cpu import (
    add_products,
    at,
    by_columns,
    clear,
    decay_write,
    decayed_row,
    dot,
    given,
    inlined,
    jumps,
    kernel,
    lanes,
    largest_of,
    load,
    load_first,
    multiply_add,
    nowhere,
    over_heads,
    padded,
    put,
    put_matrix,
    raise_limits,
    set_limits,
    set_totals,
    spread,
    store,
    sum_of,
    take,
    take_matrix,
    two_writes_two_reads,
    viewed,
    zeros,
)
from ..kernels import segments
from ._arguments import GROWTH, MOST_DECAY, DeltaGradients, DeltaInputs, DeltaSaved


@inlined
def scale(v, n, factor):  # type: ignore[no-untyped-def]
    """Multiply n numbers of scratch by a factor."""
    zero = zeros(v, 1)
    for i in range(0, n, lanes(zero)):
        store(v, i, spread(factor, zero) * load(v, i, zero))


@by_columns
def decay_write_read(w, rows, columns, c, zero, keep, k, g, v, result):  # type: ignore[no-untyped-def]
    """Multiply W by `keep`, add the rank-1 matrix k g to it, then set result = v W."""
    keeps, g_c = spread(keep, zero), load(g, c, zero)
    a, b = zero, zero
    for i in range(0, rows - 1, 2):
        a = multiply_add(spread(v[i], zero), decayed_row(w, i * columns + c, keeps, k[i], g_c), a)
        b = multiply_add(spread(v[i + 1], zero), decayed_row(w, (i + 1) * columns + c, keeps, k[i + 1], g_c), b)
    if rows % 2:
        i = rows - 1
        a = multiply_add(spread(v[i], zero), decayed_row(w, i * columns + c, keeps, k[i], g_c), a)
    store(result, c, a + b)


@inlined
def jumps_when_undone(update, e, k_largest, keep, undone, limits):  # type: ignore[no-untyped-def]
    """Whether undoing a step and those before it would be inexact (if so, limits are set anew); and `undone` after it.

    What a step writes counts as many times as undoing the decays since the limits were set would magnify its rounding.
    Where so much has decayed that nothing would be exact, counting begins anew with what this step writes.
    """
    undone = undone / abs(keep)
    if undone > MOST_DECAY:
        clear(limits, e)
        raise_limits(update, e, k_largest, GROWTH, limits)
        return True, 1.0
    return jumps(update, e, k_largest * undone, GROWTH, limits), undone


@inlined
def take_update(n, d, e, k_table, beta_table, error_table, k, update):  # type: ignore[no-untyped-def]
    """Take the k of a step and compute what it wrote under it."""
    take(at(k_table, n * d), d, k)
    none = zeros(k, 1)
    rate = spread(beta_table[n], none)
    for c in range(0, e, lanes(none)):
        store(update, c, rate * load_first(error_table, n * e + c, e - c, none))


@by_columns
def _undo(w, rows, columns, c, zero, g, keep, inverse, k, undone, de, dy, sums, of_q, of_k):  # type: ignore[no-untyped-def]
    """Undo a step in W, gather W dy in `of_q` and W de in `of_k`, and take its gradient g back over the step.

    `undone` is what the step wrote under k, and `inverse` one over what it kept; nothing and 1 where W is from before
    the step already. `sums` become those of the columns of g W, with the gradient from after the decay.
    """
    keeps, inverses, one = spread(keep, zero), spread(inverse, zero), zeros(w, 1)
    undone_c, de_c, dy_c, g_w = load(undone, c, zero), load(de, c, zero), load(dy, c, zero), zero
    for i in range(rows):
        k_i = spread(k[i], zero)
        row = inverses * (load(w, i * columns + c, zero) - k_i * undone_c)
        store(w, i * columns + c, row)
        add_products(of_q, i, c, row, dy_c, one)
        add_products(of_k, i, c, row, de_c, one)
        gradient = load(g, i * columns + c, zero) - k_i * de_c
        g_w = multiply_add(gradient, row, g_w)
        store(g, i * columns + c, keeps * gradient)
    store(sums, c, g_w)


def _clear_scratch(sizes, scratch):  # type: ignore[no-untyped-def]
    _, _, d, e, _ = sizes
    nothing, none_k = scratch[8], scratch[14]
    clear(nothing, e)
    clear(none_k, d)
    for partial in scratch[2:5]:
        clear(partial, padded(d, partial) * lanes(zeros(partial, 1)))


@kernel(_clear_scratch)
def _backward_head(head, sizes, scratch, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, e, interval = sizes
    w, g, of_g, of_q, of_k, limits, dy, update, nothing, kg, de, sums, keeps, k, none_k, dk, dq, old = scratch
    dy_table, dend, q_table, k_table, beta_table, state, decay_table, end = tables[:8]
    error_table, checkpoints, reset, jump_table = tables[8:12]
    dq_table, dk_table, dv_table, dbeta_table, dstate, ddecay_table = tables[12:]
    resets, segment = given(reset), viewed(reset, np.int32(0))
    last_jumps = viewed(jump_table, np.int32(0))
    intervals = (steps + interval - 1) // interval
    columns = padded(e, w)
    none = zeros(w, 1)
    b, h = head // heads, head % heads
    # w is the matrix, g the gradient of the loss with respect to it. Both start from the end.
    take_matrix(at(end, head * d * e), d, e, w)
    take_matrix(at(dend, head * d * e), d, e, g)
    base = (steps - 1) // interval * interval
    if resets:
        base = max(base, segment[b * steps + steps - 1])
    stop = max(base, last_jumps[head * intervals + intervals - 1])
    for t in range(steps - 1, -1, -1):
        n = (b * steps + t) * heads + h
        keep = decay_table[n]
        take(at(dy_table, n * e), e, dy)
        take_update(n, d, e, k_table, beta_table, error_table, k, update)
        q = at(q_table, n * d)
        two_writes_two_reads(g, d, columns, none_k, nothing, q, dy, nowhere(g), k, kg, update, dk, of_g)
        dbeta_table[n] = dot(kg, at(error_table, n * e), e)
        rate = spread(beta_table[n], none)
        for c in range(0, e, lanes(none)):
            store(de, c, rate * load(kg, c, none))
        put(de, e, at(dv_table, n * e))
        along = spread(dot(update, dy, e), none)
        is_base = t == base
        is_start = resets and segment[b * steps + t] == t
        if t == stop:
            # The matrix before this step cannot be had by undoing: it is written again.
            if resets and base == segment[b * steps + t]:
                clear(w, d * columns)
            elif base == 0:
                take_matrix(at(state, head * d * e) if given(state) else state, d, e, w)
            else:
                stored = (head * (intervals - 1) + base // interval - 1) * d * e
                take_matrix(at(checkpoints, stored), d, e, w)
            stop = base
            if t > base:
                set_limits(w, d, columns, GROWTH, limits)
                undone = 1.0
                for s in range(base, t):
                    each = (b * steps + s) * heads + h
                    take_update(each, d, e, k_table, beta_table, error_table, k, update)
                    for c in range(0, e, lanes(none)):
                        store(keeps, c, spread(decay_table[each], none))
                    decay_write(w, d, columns, keeps, k, update)
                    if s == base:
                        raise_limits(update, e, largest_of(k, d), GROWTH, limits)
                    jumped, undone = jumps_when_undone(update, e, largest_of(k, d), decay_table[each], undone, limits)
                    if jumped:
                        stop = s
                take(at(k_table, n * d), d, k)
            _undo(w, d, columns, g, keep, 1.0, k, nothing, de, dy, sums, of_q, of_k)
        else:
            _undo(w, d, columns, g, keep, 1.0 / keep, k, update, de, dy, sums, of_q, of_k)
        ddecay_table[n] = sum_of(sums, e)
        # Both are read of what the matrix decayed to; q also of what was written.
        set_totals(of_q, d, dq)
        set_totals(of_k, d, old)
        for i in range(0, d, lanes(none)):
            dq_i = spread(keep, none) * load(dq, i, none)
            store(dq, i, multiply_add(along, load(k, i, none), dq_i))
            store(dk, i, load(dk, i, none) - spread(keep, none) * load(old, i, none))
        put(dq, d, at(dq_table, n * d))
        put(dk, d, at(dk_table, n * d))
        if is_start:
            # Before this step the matrix was zero, whatever went before: no gradient goes further back.
            clear(g, d * columns)
        if is_base and t > 0:
            base = (t - 1) // interval * interval
            if resets:
                base = max(base, segment[b * steps + t - 1])
            # What stood before a reset is not at hand: undoing cannot go on from there.
            stop = t - 1 if is_start else max(base, last_jumps[head * intervals + (t - 1) // interval])
    put_matrix(g, d, e, at(dstate, head * d * e))


def backward(
    dy: Tensor, dend: Tensor, inputs: DeltaInputs, end: Tensor, saved: DeltaSaved, gradients: DeltaGradients
) -> None:
    """Fill the gradients."""
    q, k, _, beta, state, decay, reset = inputs
    b, t, h, d = q.shape
    e = dy.shape[3]
    over_heads(
        _backward_head,
        heads=b * h,
        work=9 * t * end.numel(),
        sizes=(t, h, d, e, _checkpoints.steps_between(d, e, True)),
        scratch=(*[(d, e)] * 2, *[(d + 15, 1)] * 3, *[(1, e)] * 8, *[(1, d)] * 5),
        tables=(
            *(dy, dend, q, k, beta, state, decay, end),
            *(saved.error, saved.checkpoints, None if reset is None else segments(reset), saved.last_jumps),
            *gradients,
        ),
    )
