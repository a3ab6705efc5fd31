"""The self-referential recurrence with forget gates on CPU cores; see `cpu.py`, which has the one without.

What decays is the change of the matrix. So the change is held, and beside it the matrix it is a change of; both are
read as one. Going back, both gradients, of the change and of the matrix at first, are gathered.
"""

import numpy as np
from torch import Tensor

from .. import _checkpoints
from .._cpu import (
    absolute,
    add_products,
    any_above,
    at,
    by_columns,
    choose_first,
    clear,
    decay_write,
    decayed_row,
    given,
    if_negative,
    inlined,
    kernel,
    lanes,
    larger,
    load,
    multiply_add,
    over_heads,
    padded,
    put,
    put_matrix,
    set_totals,
    spread,
    store,
    sum_of,
    take,
    take_matrix,
    viewed,
    zeros,
)
from ..kernels import segments
from ._arguments import GROWTH, MOST_DECAY, SelfReferentialGradients, SelfReferentialInputs, SelfReferentialSaved
from ._cpu_vectors import (
    FORGET_MIN,
    FORGET_RANGE,
    clip,
    make_keys,
    make_rates,
    settings,
    spread_keeps,
    spread_rates,
    take_update,
    through_keys,
    through_rates,
    weigh,
)
from .options import Options

# Below, w is the change, with `rows` rows and padded `columns`, and `base` the matrix it is a change of.


@by_columns
def _read(w, rows, columns, c, zero, base, v, result):  # type: ignore[no-untyped-def]
    """Set result = v (base + w)."""
    a, b = zero, zero
    for i in range(rows):
        a = multiply_add(spread(v[i], zero), load(base, i * columns + c, zero), a)
        b = multiply_add(spread(v[i], zero), load(w, i * columns + c, zero), b)
    store(result, c, a + b)


@by_columns
def _decay_write_read(w, rows, columns, c, zero, base, keeps, k, g, v, result):  # type: ignore[no-untyped-def]
    """Let w decay, add the rank-1 matrix k g, then set result = v (base + w)."""
    keep, g_c = load(keeps, c, zero), load(g, c, zero)
    a, b = zero, zero
    for i in range(rows):
        a = multiply_add(spread(v[i], zero), load(base, i * columns + c, zero), a)
        b = multiply_add(spread(v[i], zero), decayed_row(w, i * columns + c, keep, k[i], g_c), b)
    store(result, c, a + b)


@by_columns
def _gather(g, rows, columns, c, zero, to_weight, keeps, u, weighted, x, dz, k, kg, update, partial):  # type: ignore[no-untyped-def]
    """Take the gradient g of the change back over one step, and read it.

    Of what the step read of the matrix, u `weighted` and x dz, the matrix at first gets as much as the change; g itself
    decays. Then kg = k g, and `partial` gathers g `update`.
    """
    weighted_c, dz_c, keep = load(weighted, c, zero), load(dz, c, zero), load(keeps, c, zero)
    update_c, one = load(update, c, zero), zeros(g, 1)
    sums = zero
    for i in range(rows):
        read = multiply_add(spread(u[i], zero), weighted_c, spread(x[i], zero) * dz_c)
        store(to_weight, i * columns + c, load(to_weight, i * columns + c, zero) + read)
        row = multiply_add(keep, load(g, i * columns + c, zero), read)
        store(g, i * columns + c, row)
        sums = multiply_add(spread(k[i], zero), row, sums)
        add_products(partial, i, c, row, update_c, one)
    store(kg, c, sums)


@by_columns
def _undo(w, rows, columns, c, zero, base, dz, k, update, inverse, g, forgotten, weighted, of_x, of_u):  # type: ignore[no-untyped-def]
    """Gather (base + w) dz in `of_x`, undo a step in w, then gather (base + w) `weighted` in `of_u`.

    `inverse` is one over what the step kept, and `forgotten` becomes the gradient of that: the sums of g w.
    """
    dz_c, update_c, weighted_c = load(dz, c, zero), load(update, c, zero), load(weighted, c, zero)
    inverse_c, one = load(inverse, c, zero), zeros(w, 1)
    sums = zero
    for i in range(rows):
        first, change = load(base, i * columns + c, zero), load(w, i * columns + c, zero)
        add_products(of_x, i, c, first + change, dz_c, one)
        change = inverse_c * (change - spread(k[i], zero) * update_c)
        store(w, i * columns + c, change)
        sums = multiply_add(change, load(g, i * columns + c, zero), sums)
        add_products(of_u, i, c, first + change, weighted_c, one)
    store(forgotten, c, sums)


@by_columns
def _read_columns(w, rows, columns, c, zero, base, v, partial):  # type: ignore[no-untyped-def]
    """Gather (base + w) v in `partial`."""
    v_c, one = load(v, c, zero), zeros(w, 1)
    for i in range(rows):
        row = load(base, i * columns + c, zero) + load(w, i * columns + c, zero)
        add_products(partial, i, c, row, v_c, one)


# How far undoing may go (`../_checkpoints.py`).


@by_columns
def _set_limits(w, rows, columns, c, zero, base, limits, floors, undone):  # type: ignore[no-untyped-def]
    """Begin anew: limits by the largest number of each column of base + w, floors by that of base, nothing undone."""
    most, most_at_first = zero, zero
    for i in range(rows):
        at_first = load(base, i * columns + c, zero)
        most = larger(absolute(at_first + load(w, i * columns + c, zero)), most)
        most_at_first = larger(absolute(at_first), most_at_first)
    store(limits, c, spread(GROWTH, zero) * most)
    store(floors, c, spread(GROWTH, zero) * most_at_first)
    store(undone, c, spread(1.0, zero))


@inlined
def _jumps(difference, m, keeps, limits, floors, undone):  # type: ignore[no-untyped-def]
    """Whether undoing a step and those before it would be inexact: a difference beyond its limit, or much that decayed.

    The limit is then set anew, by the difference; where much has decayed, no lower than the column can be by now.
    """
    zero = zeros(difference, 1)
    jumped, most, growth = False, spread(MOST_DECAY, zero), spread(GROWTH, zero)
    for c in range(0, m, lanes(zero)):
        size = choose_first(m - c, absolute(load(difference, c, zero)), zero)
        factor = choose_first(m - c, load(undone, c, zero) / load(keeps, c, zero), zero)
        limit = load(limits, c, zero)
        if any_above(size, limit):
            jumped = True
            limit = if_negative(limit - size, growth * size, limit)
        if any_above(factor, most):
            jumped = True
            lowest = larger(load(floors, c, zero), limit / most)
            limit = if_negative(most - factor, larger(lowest, growth * size), limit)
            factor = if_negative(most - factor, spread(1.0, zero), factor)
        store(limits, c, limit)
        store(undone, c, factor)
    return jumped


@kernel()
def _forward_head(head, sizes, scratch, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, out, n_rates, n_gates, is_l2, interval = sizes
    w, base, z, difference, update, limits, floors, undone, rates, keeps, q, k, u, beta, scales = scratch
    x_table, weight, state, y_table, end, numbers = tables[:6]
    q_table, k_table, beta_table, scale_table, difference_table, checkpoints, jump_table, reset = tables[6:]
    last_jumps = viewed(jump_table, np.int32(0))
    intervals = (steps + interval - 1) // interval
    resets, is_reset = given(reset), viewed(reset, np.uint8(0))
    save = given(q_table)
    m = out + 2 * d + n_rates + n_gates
    columns = padded(m, w)
    none = zeros(w, 1)
    b, h = head // heads, head % heads
    take_matrix(at(weight, h * d * m), d, m, base)
    take_matrix(at(state, head * d * m) if given(state) else state, d, m, w)
    jump, left, is_new = -1, interval, True
    for t in range(steps):
        n = (b * steps + t) * heads + h
        x = at(x_table, n * d)
        if resets and is_reset[b * steps + t]:
            clear(w, d * columns)
            is_new = True
            _read(w, d, columns, base, x, z)
        elif t == 0:
            _read(w, d, columns, base, x, z)
        else:
            # The write of a step is done together with the first reading of the next.
            _decay_write_read(w, d, columns, base, keeps, k, update, x, z)
        if save:
            if left == 0:
                left, is_new = interval, True
                last_jumps[head * intervals + t // interval - 1] = jump
                put_matrix(w, d, m, at(checkpoints, (head * (intervals - 1) + t // interval - 1) * d * m))
            left -= 1
            if is_new:
                _set_limits(w, d, columns, base, limits, floors, undone)
                is_new = False
        put(z, out, at(y_table, n * out))
        make_keys(at(z, out), d, is_l2, q, k, scales)
        make_rates(at(z, out + 2 * d), n_rates, n_gates, numbers, beta)
        for i in range(0, d, lanes(none)):
            store(u, i, load(q, i, none) - load(k, i, none))
        _read(w, d, columns, base, u, difference)
        clip(difference, m, numbers)
        spread_rates(beta, n_rates, out, d, m, rates)
        spread_keeps(beta, n_rates, n_gates, out, m, keeps)
        for c in range(0, m, lanes(none)):
            store(update, c, load(rates, c, none) * load(difference, c, none))
        if save:
            if _jumps(difference, m, keeps, limits, floors, undone):
                jump = t
            put(q, d, at(q_table, n * d))
            put(k, d, at(k_table, n * d))
            put(beta, n_rates + n_gates, at(beta_table, n * (n_rates + n_gates)))
            put(difference, m, at(difference_table, n * m))
            if is_l2:
                put(scales, 2, at(scale_table, n * 2))
    if save:
        last_jumps[head * intervals + intervals - 1] = jump
    decay_write(w, d, columns, keeps, k, update)
    put_matrix(w, d, m, at(end, head * d * m))


@inlined
def _through_gates(forgotten, beta, numbers, n_rates, n_gates, out, m, dgates):  # type: ignore[no-untyped-def]
    """Set dgates to the gradient of what the matrix put out for the gates: what is kept falls as one opens."""
    of_y, of_others = sum_of(forgotten, out), sum_of(at(forgotten, out), m - out)
    if n_gates == 1:
        of_others += of_y
    for gate in range(n_gates):
        along = of_y if gate < n_gates - 1 else of_others
        above = beta[n_rates + gate] - numbers[FORGET_MIN]
        # Where the range is empty, nothing depends on the gate.
        if numbers[FORGET_RANGE] > 0:
            dgates[gate] = -along * above * (1 - above / numbers[FORGET_RANGE])
        else:
            dgates[gate] = 0.0


def _clear_scratch(sizes, scratch):  # type: ignore[no-untyped-def]
    _, _, d, out, n_rates, n_gates, _, _ = sizes
    of_x, of_u = scratch[4:6]
    nothing, ones = scratch[15:17]
    x_none, none = scratch[25], zeros(ones, 1)
    m = out + 2 * d + n_rates + n_gates
    clear(x_none, d)
    clear(nothing, m)
    clear(of_x, padded(d, of_x) * lanes(none))
    clear(of_u, padded(d, of_u) * lanes(none))
    for c in range(0, m, lanes(none)):
        store(ones, c, spread(1.0, none))


@kernel(_clear_scratch)
def _backward_head(head, sizes, scratch, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, out, n_rates, n_gates, is_l2, interval = sizes
    w, base, g, to_weight, of_x, of_u = scratch[:6]
    update, weighted, kg, dz, limits, floors, undone, inverse, forgotten, nothing, ones = scratch[6:17]
    rates, keeps, q, k, u, dk, du, dx, x_none, beta = scratch[17:27]
    dy_table, dend, x_table, weight, state, end = tables[:6]
    q_table, k_table, beta_table, scale_table, difference_table, checkpoints, jump_table, reset = tables[6:14]
    dx_table, dstate, dweight, numbers = tables[14:]
    resets, segment = given(reset), viewed(reset, np.int32(0))
    last_jumps = viewed(jump_table, np.int32(0))
    intervals = (steps + interval - 1) // interval
    m = out + 2 * d + n_rates + n_gates
    columns = padded(m, w)
    none = zeros(w, 1)
    b, h = head // heads, head % heads
    # w is the change from the end of the sequence on, g the gradient of the loss with respect to it.
    take_matrix(at(weight, h * d * m), d, m, base)
    take_matrix(at(end, head * d * m), d, m, w)
    take_matrix(at(dend, head * d * m) if given(dend) else dend, d, m, g)
    clear(to_weight, d * columns)
    start = (steps - 1) // interval * interval
    if resets:
        start = max(start, segment[b * steps + steps - 1])
    stop = max(start, last_jumps[head * intervals + intervals - 1])
    is_end = True
    for t in range(steps - 1, -1, -1):
        n = (b * steps + t) * heads + h
        if is_end:
            # No step of this segment comes after this one.
            clear(u, d)
            clear(weighted, m)
            clear(dz, m)
            take(ones, m, keeps)
            x = x_none
        difference = at(difference_table, n * m)
        take(at(q_table, n * d), d, q)
        take_update(n, d, m, k_table, beta_table, difference_table, n_rates, n_gates, k, beta, rates, update)
        # What the step after this one adds to g, and its dx, are computed together with what this one needs.
        _gather(g, d, columns, to_weight, keeps, u, weighted, x, dz, k, kg, update, of_u)
        set_totals(of_u, d, dk)
        weigh(rates, kg, difference, m, numbers, weighted)
        spread_keeps(beta, n_rates, n_gates, out, m, keeps)
        if t == stop:
            _read_columns(w, d, columns, base, dz, of_x)
            # The matrix before this step cannot be had by undoing: it is written again.
            if resets and start == segment[b * steps + t]:
                clear(w, d * columns)
            elif start == 0:
                take_matrix(at(state, head * d * m) if given(state) else state, d, m, w)
            else:
                stored = (head * (intervals - 1) + start // interval - 1) * d * m
                take_matrix(at(checkpoints, stored), d, m, w)
            stop = start
            if t > start:
                _set_limits(w, d, columns, base, limits, floors, undone)
                for s in range(start, t):
                    each = (b * steps + s) * heads + h
                    take_update(
                        each, d, m, k_table, beta_table, difference_table, n_rates, n_gates, k, beta, rates,
                        update,
                    )  # fmt: skip
                    spread_keeps(beta, n_rates, n_gates, out, m, keeps)
                    decay_write(w, d, columns, keeps, k, update)
                    take(at(difference_table, each * m), m, inverse)
                    if _jumps(inverse, m, keeps, limits, floors, undone):
                        stop = s
                take_update(n, d, m, k_table, beta_table, difference_table, n_rates, n_gates, k, beta, rates, update)
                spread_keeps(beta, n_rates, n_gates, out, m, keeps)
            set_totals(of_x, d, dx)
            _undo(w, d, columns, base, nothing, k, nothing, ones, g, forgotten, weighted, of_x, of_u)
        else:
            for c in range(0, m, lanes(none)):
                store(inverse, c, spread(1.0, none) / load(keeps, c, none))
            _undo(w, d, columns, base, dz, k, update, inverse, g, forgotten, weighted, of_x, of_u)
            set_totals(of_x, d, dx)
        set_totals(of_u, d, du)
        if not is_end:
            put(dx, d, at(dx_table, (n + heads) * d))
        for i in range(0, d, lanes(none)):
            store(u, i, load(q, i, none) - load(k, i, none))
            store(dk, i, load(dk, i, none) - load(du, i, none))
        take(at(dy_table, n * out), out, dz)
        through_keys(q, k, du, dk, d, is_l2, at(scale_table, n * 2), at(dz, out))
        through_rates(kg, difference, beta, n_rates, out, d, m, at(dz, out + 2 * d))
        _through_gates(forgotten, beta, numbers, n_rates, n_gates, out, m, at(dz, out + 2 * d + n_rates))
        x = at(x_table, n * d)
        is_start = resets and segment[b * steps + t] == t
        is_end = is_start
        if t == 0 or is_start:
            _read_columns(w, d, columns, base, dz, of_x)
            set_totals(of_x, d, dx)
            put(dx, d, at(dx_table, n * d))
            _gather(g, d, columns, to_weight, keeps, u, weighted, x, dz, k, kg, update, of_u)
        if is_start:
            # Before this step the change was zero, whatever came before: no gradient goes further back.
            clear(g, d * columns)
        if t == start and t > 0:
            start = (t - 1) // interval * interval
            if resets:
                start = max(start, segment[b * steps + t - 1])
            # What stood before a reset is not at hand: undoing cannot go on from there.
            stop = t - 1 if is_start else max(start, last_jumps[head * intervals + (t - 1) // interval])
    put_matrix(to_weight, d, m, at(dweight, head * d * m))
    put_matrix(g, d, m, at(dstate, head * d * m))


def forward(inputs: SelfReferentialInputs, y: Tensor, end: Tensor, saved: SelfReferentialSaved | None) -> None:
    """Fill y, end and what is saved."""
    x, weight, state, reset, options = inputs
    b, t, h, d = x.shape
    m, out, rates, gates = weight.shape[2], y.shape[3], options.learning_rates, options.forget_gates
    over_heads(
        _forward_head,
        heads=b * h,
        work=4 * t * end.numel(),
        sizes=_sizes(t, h, d, m, out, options),
        scratch=(*[(d, m)] * 2, *[(1, m)] * 6, *[(2, m)] * 2, *[(1, d)] * 3, (1, rates + gates), (1, 2)),
        tables=(x, weight, state, y, end, settings(options, weight.dtype), *(saved or (None,) * 7), reset),
    )


def backward(
    dy: Tensor,
    dend: Tensor | None,
    inputs: SelfReferentialInputs,
    end: Tensor,
    saved: SelfReferentialSaved,
    gradients: SelfReferentialGradients,
) -> None:
    """Fill the gradients."""
    x, weight, state, reset, options = inputs
    b, t, h, d = x.shape
    m, out, rates, gates = weight.shape[2], dy.shape[3], options.learning_rates, options.forget_gates
    over_heads(
        _backward_head,
        heads=b * h,
        work=10 * t * end.numel(),
        sizes=_sizes(t, h, d, m, out, options),
        scratch=(
            *[(d, m)] * 4,
            *[(d + 15, 1)] * 2,
            *[(1, m)] * 11,
            *[(2, m)] * 2,
            *[(1, d)] * 7,
            (1, rates + gates),
        ),
        tables=(
            *(dy, dend, x, weight, state, end),
            *saved,
            None if reset is None else segments(reset),
            *gradients,
            settings(options, weight.dtype),
        ),
    )


def _sizes(t: int, h: int, d: int, m: int, out: int, options: Options) -> tuple[int, ...]:
    """What both loops are told of sizes."""
    is_l2, interval = options.key_map == "l2", _checkpoints.steps_between(d, m, True)
    return t, h, d, out, options.learning_rates, options.forget_gates, is_l2, interval
