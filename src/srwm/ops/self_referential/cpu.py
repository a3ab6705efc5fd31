"""The self-referential recurrence on CPU cores: compiled by numba, each core runs its share of the heads.

The kernels here are those of matrices that forget nothing; `_gated_cpu.py` has those with gates. `../_cpu/README.md`
says how kernels are written; here they follow the equations of README.md. A row of a table belongs to one step of one
head, (b steps + t) heads + h. What a loop over steps needs of the next step is asked for during this one, because it
lies far away in memory.
"""

import numpy as np
from torch import Tensor

from .. import _checkpoints
from .._cpu import (
    at,
    by_columns,
    clear,
    expect_to_read,
    expect_to_write,
    given,
    inlined,
    jumps,
    kernel,
    lanes,
    load,
    load_first,
    multiply_add,
    nowhere,
    over_heads,
    padded,
    prefetch,
    put,
    read,
    read_write_read,
    set_limits,
    set_limits_of_rows,
    spread,
    store,
    store_first,
    take,
    take_transposed,
    two_writes_two_reads,
    viewed,
    write,
    write_read,
    zeros,
)
from ..kernels import segments
from . import _gated_cpu
from ._arguments import GROWTH, SelfReferentialGradients, SelfReferentialInputs, SelfReferentialSaved
from ._cpu_vectors import (
    clip,
    make_keys,
    make_rates,
    settings,
    spread_rates,
    take_update,
    through_keys,
    through_rates,
    weigh,
)


@by_columns
def _start(w, d, columns, c, zero, m, weight, state, has_state, x, z, end):  # type: ignore[no-untyped-def]
    """Set w = weight + state, then z = x w."""
    z_c = zero
    for i in range(d):
        row = load_first(weight, i * m + c, m - c, zero)
        if has_state:
            row = row + load_first(state, i * m + c, m - c, zero)
        store(w, i * columns + c, row)
        z_c = multiply_add(spread(x[i], zero), row, z_c)
        prefetch(end, i * m + c, zero, 1)
    store(z, c, z_c)


@by_columns
def _finish(w, d, columns, c, zero, m, weight, state, has_state, steps, k, update, end):  # type: ignore[no-untyped-def]
    """Set end = w + k update - weight."""
    update_c = load(update, c, zero)
    for i in range(d):
        if steps > 1:
            change = load(w, i * columns + c, zero) - load_first(weight, i * m + c, m - c, zero)
        elif has_state:
            # After one step, the same without rounding it to the precision of the weight.
            change = load_first(state, i * m + c, m - c, zero)
        else:
            change = zero
        store_first(end, i * m + c, m - c, multiply_add(spread(k[i], zero), update_c, change))
        # The state of the next head.
        prefetch(state, (d + i) * m + c, zero, 0)


@kernel()
def _forward_head(head, sizes, scratch, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, out, n_rates, is_l2, interval = sizes
    w, z, difference, update, rates, limits, q, k, u, beta, scales = scratch
    x_table, weight, state, y_table, end, numbers = tables[:6]
    q_table, k_table, beta_table, scale_table, difference_table, checkpoints, jump_table, reset = tables[6:]
    last_jumps = viewed(jump_table, np.int32(0))
    intervals = (steps + interval - 1) // interval
    resets, is_reset = given(reset), viewed(reset, np.uint8(0))
    has_state, save = given(state), given(q_table)
    m = out + 2 * d + n_rates
    columns = padded(m, w)
    none = zeros(w, 1)
    b, h = head // heads, head % heads
    weight_h, state_h, end_h = at(weight, h * d * m), at(state, head * d * m), at(end, head * d * m)
    has_change, is_new = has_state, True
    jump, left = -1, interval
    for t in range(steps):
        n = (b * steps + t) * heads + h
        if resets and is_reset[b * steps + t]:
            has_change, is_new = False, True
        # The write of a step is done together with the first reading of the next.
        x = at(x_table, n * d)
        is_start = is_new
        if is_new:
            _start(w, d, columns, m, weight_h, state_h, has_change, x, z, end_h)
            is_new = False
        else:
            write_read(w, d, columns, k, update, x, z)
        if save:
            if left == 0:
                left, is_start = interval, True
                last_jumps[head * intervals + t // interval - 1] = jump
                stored = at(checkpoints, (head * (intervals - 1) + t // interval - 1) * d * m)
                for i in range(d):
                    put(at(w, i * columns), m, at(stored, i * m))
            left -= 1
            if is_start:
                set_limits(w, d, columns, GROWTH, limits)
        put(z, out, at(y_table, n * out))
        make_keys(at(z, out), d, is_l2, q, k, scales)
        make_rates(at(z, out + 2 * d), n_rates, 0, numbers, beta)
        for i in range(0, d, lanes(none)):
            store(u, i, load(q, i, none) - load(k, i, none))
        read(w, d, columns, u, difference)
        clip(difference, m, numbers)
        spread_rates(beta, n_rates, out, d, m, rates)
        for c in range(0, m, lanes(none)):
            store(update, c, load(rates, c, none) * load(difference, c, none))
        expect_to_read(at(x_table, (n + heads) * d), d)
        expect_to_write(at(y_table, (n + heads) * out), out)
        if save:
            if jumps(difference, m, 1.0, GROWTH, limits):
                jump = t
            put(q, d, at(q_table, n * d))
            put(k, d, at(k_table, n * d))
            put(beta, n_rates, at(beta_table, n * n_rates))
            if is_l2:
                put(scales, 2, at(scale_table, n * 2))
            put(difference, m, at(difference_table, n * m))
            expect_to_write(at(q_table, (n + heads) * d), d)
            expect_to_write(at(k_table, (n + heads) * d), d)
            expect_to_write(at(beta_table, (n + heads) * n_rates), n_rates)
            expect_to_write(at(difference_table, (n + heads) * m), m)
    if save:
        last_jumps[head * intervals + intervals - 1] = jump
    _finish(w, d, columns, m, weight_h, state_h, has_change, steps, k, update, end_h)


@inlined
def _add_rows(g, d, m, target):  # type: ignore[no-untyped-def]
    """Add a matrix to a part of a table."""
    columns, none = padded(m, g), zeros(g, 1)
    for i in range(d):
        for c in range(0, m, lanes(none)):
            old = load_first(target, i * m + c, m - c, none)
            store_first(target, i * m + c, m - c, old + load(g, i * columns + c, none))


def _clear_scratch(sizes, scratch):  # type: ignore[no-untyped-def]
    _, _, d, out, n_rates, _, _ = sizes
    as_rows, partial, limits = scratch[3:6]
    x_none, m = scratch[18], out + 2 * d + n_rates
    clear(at(as_rows, d * padded(m, as_rows)), 15 * padded(m, as_rows))
    clear(x_none, d)
    clear(limits, m)
    clear(partial, padded(d, partial) * lanes(zeros(partial, 1)))


@kernel(_clear_scratch)
def _backward_head(head, sizes, scratch, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, out, n_rates, is_l2, interval = sizes
    w, g, g_end, as_rows, partial, limits = scratch[:6]
    update, undo, rates, kg, weighted, dz, q, k, u, dk, du, dx, x_none, beta = scratch[6:]
    dy_table, dend, x_table, weight, state, end = tables[:6]
    q_table, k_table, beta_table, scale_table, difference_table, checkpoints, jump_table, reset = tables[6:14]
    dx_table, dstate, dweight, numbers = tables[14:]
    resets, segment = given(reset), viewed(reset, np.int32(0))
    last_jumps = viewed(jump_table, np.int32(0))
    intervals = (steps + interval - 1) // interval
    m = out + 2 * d + n_rates
    columns, rows = padded(m, w), padded(d, w)
    none = zeros(w, 1)
    b, h = head // heads, head % heads
    weight_h, state_h = at(weight, h * d * m), at(state, head * d * m)
    # w is the matrix, transposed, from the end of the sequence on. The gradient of the loss with respect to it
    # is g plus that of the end state: apart, because what reaches `weight` may be far smaller than the latter.
    take_transposed(weight_h, at(end, head * d * m), d, m, as_rows, w)
    clear(g, d * columns)
    g_rest = nowhere(g_end)
    if given(dend):
        g_rest = g_end
        for i in range(d):
            take(at(dend, (head * d + i) * m), m, at(g_end, i * columns))
    base = (steps - 1) // interval * interval
    if resets:
        base = max(base, segment[b * steps + steps - 1])
    stop = max(base, last_jumps[head * intervals + intervals - 1])
    is_end = True
    for t in range(steps - 1, -1, -1):
        n = (b * steps + t) * heads + h
        if is_end:
            # No step of this segment comes after this one.
            clear(u, d)
            clear(weighted, m)
            clear(dz, m)
            x = x_none
        difference = at(difference_table, n * m)
        take(at(q_table, n * d), d, q)
        take_update(n, d, m, k_table, beta_table, difference_table, n_rates, 0, k, beta, rates, update)
        for c in range(0, m, lanes(none)):
            store(undo, c, none - load(update, c, none))
        expect_to_read(at(x_table, (n - heads) * d), d)
        expect_to_read(at(dy_table, (n - heads) * out), out)
        expect_to_read(at(q_table, (n - heads) * d), d)
        expect_to_read(at(k_table, (n - heads) * d), d)
        expect_to_read(at(beta_table, (n - heads) * n_rates), n_rates)
        expect_to_read(at(difference_table, (n - heads) * m), m)
        expect_to_write(at(dx_table, n * d), d)
        # What the step after this one adds to g, and its dx, are computed together with what this one needs.
        two_writes_two_reads(g, d, columns, u, weighted, x, dz, g_rest, k, kg, update, dk, partial)
        weigh(rates, kg, difference, m, numbers, weighted)
        is_base = t == base
        if t == stop:
            read(w, m, rows, dz, dx)
            # The matrix before this step cannot be had by undoing: it is written again.
            is_weight = resets and base == segment[b * steps + t]
            if base == 0 or is_weight:
                change = nowhere(state) if is_weight or not given(state) else state_h
                take_transposed(weight_h, change, d, m, as_rows, w)
            else:
                stored = at(checkpoints, (head * (intervals - 1) + base // interval - 1) * d * m)
                take_transposed(stored, nowhere(stored), d, m, as_rows, w)
            stop = base
            if t > base:
                set_limits_of_rows(w, m, rows, GROWTH, limits)
                for s in range(base, t):
                    each = (b * steps + s) * heads + h
                    take_update(each, d, m, k_table, beta_table, difference_table, n_rates, 0, k, beta, rates, update)
                    write(w, m, rows, update, k)
                    take(at(difference_table, each * m), m, undo)
                    if jumps(undo, m, 1.0, GROWTH, limits):
                        stop = s
                take_update(n, d, m, k_table, beta_table, difference_table, n_rates, 0, k, beta, rates, update)
            read(w, m, rows, weighted, du)
        else:
            read_write_read(w, m, rows, dz, dx, undo, k, weighted, du)
        if not is_end:
            put(dx, d, at(dx_table, (n + heads) * d))
        for i in range(0, d, lanes(none)):
            store(u, i, load(q, i, none) - load(k, i, none))
            store(dk, i, load(dk, i, none) - load(du, i, none))
        take(at(dy_table, n * out), out, dz)
        through_keys(q, k, du, dk, d, is_l2, at(scale_table, n * 2), at(dz, out))
        through_rates(kg, difference, beta, n_rates, out, d, m, at(dz, out + 2 * d))
        x = at(x_table, n * d)
        is_start = resets and segment[b * steps + t] == t
        is_end = is_start
        if t == 0 or is_start:
            read(w, m, rows, dz, dx)
            put(dx, d, at(dx_table, n * d))
            write(g, d, columns, u, weighted)
            write(g, d, columns, x, dz)
        if is_start:
            # Before this step the matrix was `weight` itself: the gradient goes there and no further back.
            _add_rows(g, d, m, at(dweight, head * d * m))
            clear(g, d * columns)
            g_rest = nowhere(g_end)
        if is_base and t > 0:
            base = (t - 1) // interval * interval
            if resets:
                base = max(base, segment[b * steps + t - 1])
            # What stood before a reset is not at hand: undoing cannot go on from there.
            stop = t - 1 if is_start else max(base, last_jumps[head * intervals + (t - 1) // interval])
    if given(dweight):
        _add_rows(g, d, m, at(dweight, head * d * m))
    for i in range(d):
        if given(g_rest):
            for c in range(0, m, lanes(none)):
                total = load(g, i * columns + c, none) + load(g_rest, i * columns + c, none)
                store(g, i * columns + c, total)
        put(at(g, i * columns), m, at(dstate, (head * d + i) * m))


def forward(inputs: SelfReferentialInputs, y: Tensor, end: Tensor, saved: SelfReferentialSaved | None) -> None:
    """Fill y, end and what is saved."""
    if inputs.options.forget_gates:
        _gated_cpu.forward(inputs, y, end, saved)
        return
    x, weight, state, reset, options = inputs
    b, t, h, d = x.shape
    m, out, learning_rates, is_l2 = weight.shape[2], y.shape[3], options.learning_rates, options.key_map == "l2"
    interval = _checkpoints.steps_between(d, m)
    over_heads(
        _forward_head,
        heads=b * h,
        work=3 * t * end.numel(),
        sizes=(t, h, d, out, learning_rates, is_l2, interval),
        scratch=((d, m), *[(1, m)] * 3, (2, m), (1, m), *[(1, d)] * 3, (1, learning_rates), (1, 2)),
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
    if inputs.options.forget_gates:
        _gated_cpu.backward(dy, dend, inputs, end, saved, gradients)
        return
    x, weight, state, reset, options = inputs
    b, t, h, d = x.shape
    m, out, learning_rates, is_l2 = weight.shape[2], dy.shape[3], options.learning_rates, options.key_map == "l2"
    interval = _checkpoints.steps_between(d, m)
    over_heads(
        _backward_head,
        heads=b * h,
        work=7 * t * end.numel(),
        sizes=(t, h, d, out, learning_rates, is_l2, interval),
        scratch=(
            (m + 15, d),
            (d, m),
            (d, m),
            (d + 15, m),
            (d + 15, 1),
            *[(1, m)] * 3,
            (2, m),
            *[(1, m)] * 3,
            *[(1, d)] * 7,
            (1, learning_rates),
        ),
        tables=(
            *(dy, dend, x, weight, state, end),
            *saved,
            None if reset is None else segments(reset),
            *gradients,
            settings(options, weight.dtype),
        ),
    )
