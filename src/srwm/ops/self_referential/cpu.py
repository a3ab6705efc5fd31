"""The self-referential recurrence on CPU cores: compiled by numba, each core runs its share of the heads.

`_loops.py` says how the loops are written; here they follow the equations of README.md. A row of a table belongs to
one step of one head, (b steps + t) heads + h.
"""

import numpy as np
from torch import Tensor

from .._loops import (
    by_columns,
    clear,
    compiled,
    dot,
    expect_to_read,
    expect_to_write,
    inlined,
    padded,
    put,
    read,
    read_write_read,
    sigmoid,
    softmax,
    take,
    write,
    write_read,
    write_write_read_both,
)
from .._simd import (
    at,
    lanes,
    load,
    load_first,
    multiply_add,
    pointer,
    pointers,
    prefetch,
    spread,
    store,
    store_first,
    total,
    zeros,
)
from .._threads import over_heads, segments

LINE = 16
"""Numbers of float32 in a cache line."""


@by_columns
def _start_read(w, rows, columns, c, zero, m, weight, state, has_state, x, z, end):  # type: ignore[no-untyped-def]
    """Set w = weight + state, then z = x w."""
    a, b = zero, zero
    for i in range(rows):
        row = load_first(weight, i * m + c, m - c, zero)
        if has_state:
            row = row + load_first(state, i * m + c, m - c, zero)
        store(w, i * columns + c, row)
        for line in range(0, lanes(zero), LINE):
            prefetch(end, i * m + c + line, 1)
        a, b = b, multiply_add(spread(x[i], zero), row, a)
    store(z, c, a + b)


@by_columns
def _end(w, rows, columns, c, zero, m, weight, state, has_state, steps, k, update, end):  # type: ignore[no-untyped-def]
    """Set end = w + k update - weight."""
    update_c = load(update, c, zero)
    for i in range(rows):
        if steps > 1:
            change = load(w, i * columns + c, zero) - load_first(weight, i * m + c, m - c, zero)
        elif has_state:
            # More exactly than by way of w.
            change = load_first(state, i * m + c, m - c, zero)
        else:
            change = zero
        store_first(end, i * m + c, m - c, multiply_add(spread(k[i], zero), update_c, change))
        for line in range(0, lanes(zero), LINE):
            prefetch(state, (rows + i) * m + c + line, 0)


@inlined
def _set_transposed(w, d, m, columns, weight, state, has_state):  # type: ignore[no-untyped-def]
    """Set w = weight + state, with its rows as columns."""
    for c in range(m):
        clear(at(w, c * columns), d)
        for i in range(d):
            w[c * columns + i] = weight[i * m + c]
            if has_state:
                w[c * columns + i] += state[i * m + c]


@inlined
def _spread_rates(rates, n_rates, out, d, columns):  # type: ignore[no-untyped-def]
    """Give every column the learning rate of its sub-matrix."""
    zero = zeros(rates, 1)
    start = 0
    for part in range(4):
        rate = spread(rates[part % n_rates], zero)
        end = out + part * d if part < 3 else start + n_rates
        # What is written too far is overwritten by the next part, and behind the last is padding.
        for c in range(start, end, lanes(zero)):
            store(columns, c, rate)
        start = end


@compiled
def _forward_heads(first, last, scratch, zero, sizes, reset, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, out, n_rates = sizes
    w, z, difference, update, q, k, u, rates, columns_rates = pointers(scratch, zero)
    x_table, weight, state, y_table, end, q_table, k_table, beta_table, difference_table = pointers(tables, zero)
    is_reset = pointer(reset, np.uint8(0))
    has_state, save = tables[2] != 0, tables[5] != 0
    m = out + 2 * d + n_rates
    columns = padded(m, w)
    none = zeros(w, 1)
    one = spread(zero + 1, none)
    for head in range(first, last):
        b, h = head // heads, head % heads
        weight_h, state_h, end_h = at(weight, h * d * m), at(state, head * d * m), at(end, head * d * m)
        has_change = has_state
        is_new = True
        for t in range(steps):
            n = (b * steps + t) * heads + h
            x = at(x_table, n * d)
            if reset != 0 and is_reset[b * steps + t]:
                has_change = False
                is_new = True
            # The write of a step is done together with the first reading of the next.
            if is_new:
                _start_read(w, d, columns, m, weight_h, state_h, has_change, x, z, end_h)
                is_new = False
            else:
                write_read(w, d, columns, k, update, x, z)
            put(z, out, at(y_table, n * out))
            softmax(at(z, out), d, q)
            softmax(at(z, out + d), d, k)
            store(rates, 0, sigmoid(load_first(z, out + 2 * d, n_rates, none), one))
            for i in range(0, d, lanes(none)):
                store(u, i, load(q, i, none) - load(k, i, none))
            read(w, d, columns, u, difference)
            _spread_rates(rates, n_rates, out, d, columns_rates)
            for c in range(0, m, lanes(none)):
                store(update, c, load(columns_rates, c, none) * load(difference, c, none))
            next_n = n + heads
            expect_to_read(at(x_table, next_n * d), d)
            expect_to_write(at(y_table, next_n * out), out)
            if save:
                put(q, d, at(q_table, n * d))
                put(k, d, at(k_table, n * d))
                put(rates, n_rates, at(beta_table, n * n_rates))
                put(difference, m, at(difference_table, n * m))
                expect_to_write(at(q_table, next_n * d), d)
                expect_to_write(at(k_table, next_n * d), d)
                expect_to_write(at(beta_table, next_n * n_rates), n_rates)
                expect_to_write(at(difference_table, next_n * m), m)
        _end(w, d, columns, m, weight_h, state_h, has_change, steps, k, update, end_h)


@compiled
def _backward_heads(first, last, scratch, zero, sizes, reset, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, out, n_rates = sizes
    w, g, partial, rates, q, k, u, x_none, dk, du, dx, update, undo, kg, weighted, dz, columns_rates = pointers(
        scratch, zero
    )
    (
        dy_table, dend, x_table, weight, state, end, q_table, k_table, beta_table, difference_table,
        dx_table, dstate, dreset,
    ) = pointers(tables, zero)  # fmt: skip
    segment = pointer(reset, 0)
    has_state = tables[4] != 0
    b_q, b_k, b_b = out, out + d, out + 2 * d
    m = out + 2 * d + n_rates
    columns, rows = padded(m, w), padded(d, w)
    none = zeros(w, 1)
    clear(x_none, d)
    clear(partial, rows * lanes(none))
    for head in range(first, last):
        b, h = head // heads, head % heads
        weight_h, state_h = at(weight, h * d * m), at(state, head * d * m)
        # w is the matrix, transposed; g the gradient of the loss with respect to it. Both start from the end.
        _set_transposed(w, d, m, rows, weight_h, at(end, head * d * m), True)
        for i in range(d):
            take(at(dend, (head * d + i) * m), m, at(g, i * columns))
        clear(u, d)
        clear(weighted, m)
        clear(dz, m)
        x = x_none
        is_pending = False
        for t in range(steps - 1, -1, -1):
            n = (b * steps + t) * heads + h
            difference = at(difference_table, n * m)
            take(at(q_table, n * d), d, q)
            take(at(k_table, n * d), d, k)
            take(at(beta_table, n * n_rates), n_rates, rates)
            _spread_rates(rates, n_rates, out, d, columns_rates)
            for c in range(0, m, lanes(none)):
                wrote = load(columns_rates, c, none) * load_first(difference, c, m - c, none)
                store(update, c, wrote)
                store(undo, c, none - wrote)
            next_n = n - heads
            expect_to_read(at(x_table, next_n * d), d)
            expect_to_read(at(dy_table, next_n * out), out)
            expect_to_read(at(q_table, next_n * d), d)
            expect_to_read(at(k_table, next_n * d), d)
            expect_to_read(at(beta_table, next_n * n_rates), n_rates)
            expect_to_read(at(difference_table, next_n * m), m)
            expect_to_write(at(dx_table, n * d), d)
            write_write_read_both(g, d, columns, u, weighted, x, dz, k, kg, update, dk, partial)
            for c in range(0, m, lanes(none)):
                store(weighted, c, load(kg, c, none) * load(columns_rates, c, none))
            read_write_read(w, m, rows, dz, dx, undo, k, weighted, du)
            if is_pending:
                put(dx, d, at(dx_table, (n + heads) * d))
            take(at(dy_table, n * out), out, dz)
            start = 0
            if n_rates == 1:
                dz[b_b] = dot(kg, difference, m) * rates[0] * (1 - rates[0])
            else:
                for part in range(4):
                    n_part = out if part == 0 else (4 if part == 3 else d)
                    along = dot(at(kg, start), at(difference, start), n_part)
                    dz[b_b + part] = along * rates[part] * (1 - rates[part])
                    start += n_part
            # Through the softmaxes, back to what the matrix put out as q and k.
            along_q, along_k = none, none
            for i in range(0, d, lanes(none)):
                q_i, k_i, du_i = load(q, i, none), load(k, i, none), load(du, i, none)
                dk_i = load(dk, i, none) - du_i
                store(u, i, q_i - k_i)
                store(dk, i, dk_i)
                along_q = multiply_add(du_i, q_i, along_q)
                along_k = multiply_add(dk_i, k_i, along_k)
            along_q, along_k = spread(total(along_q), none), spread(total(along_k), none)
            for i in range(0, d, lanes(none)):
                store_first(dz, b_q + i, d - i, load(q, i, none) * (load(du, i, none) - along_q))
                store_first(dz, b_k + i, d - i, load(k, i, none) * (load(dk, i, none) - along_k))
            x = at(x_table, n * d)
            is_pending = True
            if t == 0 or (reset != 0 and segment[b * steps + t] == t):
                read(w, m, rows, dz, dx)
                put(dx, d, at(dx_table, n * d))
                write(g, d, columns, u, weighted)
                write(g, d, columns, x, dz)
                if reset != 0 and segment[b * steps + t] == t:
                    # Before this step the matrix was `weight` itself: the gradient goes there and no further back.
                    for i in range(d):
                        for c in range(0, m, lanes(none)):
                            place = (head * d + i) * m + c
                            old = load_first(dreset, place, m - c, none)
                            store_first(dreset, place, m - c, old + load(g, i * columns + c, none))
                            store(g, i * columns + c, none)
                    clear(u, d)
                    clear(weighted, m)
                    clear(dz, m)
                    x = x_none
                    is_pending = False
                    if t > 0:
                        # What stood before the reset is lost; write it again from the start of its segment.
                        start = segment[b * steps + t - 1]
                        _set_transposed(w, d, m, rows, weight_h, state_h, start < 0 and has_state)
                        for s in range(max(start, 0), t):
                            n = (b * steps + s) * heads + h
                            take(at(k_table, n * d), d, k)
                            take(at(beta_table, n * n_rates), n_rates, rates)
                            _spread_rates(rates, n_rates, out, d, columns_rates)
                            for c in range(0, m, lanes(none)):
                                rate = load(columns_rates, c, none)
                                store(update, c, rate * load_first(difference_table, n * m + c, m - c, none))
                            write(w, m, rows, update, k)
        for i in range(d):
            put(at(g, i * columns), m, at(dstate, (head * d + i) * m))


def forward(
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    learning_rates: int,
    y: Tensor,
    end: Tensor,
    saved: list[Tensor] | None,
) -> None:
    """Fill y, end and the saved vectors."""
    b, t, h, d = x.shape
    m, out = weight.shape[2], y.shape[3]
    over_heads(
        _forward_heads,
        b * h,
        3 * t * end.numel(),
        ((d, m), (1, m), (1, m), (1, m), (1, d), (1, d), (1, d), (1, 4), (2, m)),
        (t, h, d, out, learning_rates),
        reset,
        (x, weight, state, y, end, *(saved or (None, None, None, None))),
    )


def backward(
    dy: Tensor,
    dend: Tensor,
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    end: Tensor,
    saved: tuple[Tensor, ...],
    dx: Tensor,
    dstate: Tensor,
    dreset: Tensor | None,
) -> None:
    """Fill the gradients of x and of the incoming state, and what resets pass on to the weight."""
    b, t, h, d = x.shape
    m = weight.shape[2]
    v_d, v_m = (1, d), (1, m)
    over_heads(
        _backward_heads,
        b * h,
        7 * t * end.numel(),
        ((m, d), (d, m), (d + 15, 1), (1, 4), v_d, v_d, v_d, v_d, v_d, v_d, v_d, v_m, v_m, v_m, v_m, v_m, (2, m)),
        (t, h, d, dy.shape[3], saved[2].shape[3]),
        segments(reset),
        (dy, dend, x, weight, state, end, *saved, dx, dstate, dreset),
    )
