"""The delta rule on CPU cores: compiled by numba, each core runs its share of the heads.

`_loops.py` says how the loops are written; here they follow the equations of README.md. A row of a table belongs to
one step of one head, (b steps + t) heads + h.
"""

import numpy as np
from torch import Tensor

from .._loops import (
    clear,
    compiled,
    dot,
    inlined,
    padded,
    put,
    read,
    read_write_read,
    take,
    write,
    write_read,
    write_write_read_both,
)
from .._simd import at, lanes, load, load_first, pointer, pointers, spread, store, zeros
from .._threads import over_heads, segments


@inlined
def _set_transposed(w, d, e, columns, state):  # type: ignore[no-untyped-def]
    """Set w = state, with its rows as columns."""
    for c in range(e):
        clear(at(w, c * columns), d)
        for i in range(d):
            w[c * columns + i] = state[i * e + c]


@compiled
def _forward_heads(first, last, scratch, zero, sizes, reset, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, e = sizes
    w, held, error, update, y, q, k = pointers(scratch, zero)
    q_table, k_table, v_table, beta_table, state, y_table, end, error_table = pointers(tables, zero)
    is_reset = pointer(reset, np.uint8(0))
    has_state, save = tables[4] != 0, tables[7] != 0
    columns = padded(e, w)
    none = zeros(w, 1)
    for head in range(first, last):
        b, h = head // heads, head % heads
        for i in range(d):
            if has_state:
                take(at(state, (head * d + i) * e), e, at(w, i * columns))
            else:
                clear(at(w, i * columns), e)
        for t in range(steps):
            n = (b * steps + t) * heads + h
            if reset != 0 and is_reset[b * steps + t]:
                clear(w, d * columns)
            take(at(q_table, n * d), d, q)
            take(at(k_table, n * d), d, k)
            read(w, d, columns, k, held)
            rate = spread(beta_table[n], none)
            for c in range(0, e, lanes(none)):
                missed = load_first(v_table, n * e + c, e - c, none) - load(held, c, none)
                store(error, c, missed)
                store(update, c, rate * missed)
            write_read(w, d, columns, k, update, q, y)
            put(y, e, at(y_table, n * e))
            if save:
                put(error, e, at(error_table, n * e))
        for i in range(d):
            put(at(w, i * columns), e, at(end, (head * d + i) * e))


@compiled
def _backward_heads(first, last, scratch, zero, sizes, reset, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, e = sizes
    w, g, partial, k_before, q, k, dq, dk, held, error, update, undo, dy, kg, dv, dv_before = pointers(scratch, zero)
    (
        dy_table, dend, q_table, k_table, beta_table, state, end, error_table,
        dq_table, dk_table, dv_table, dbeta_table, dstate,
    ) = pointers(tables, zero)  # fmt: skip
    segment = pointer(reset, 0)
    has_state = tables[5] != 0
    columns, rows = padded(e, w), padded(d, w)
    none = zeros(w, 1)
    clear(partial, rows * lanes(none))
    for head in range(first, last):
        b, h = head // heads, head % heads
        # w is the matrix, transposed; g the gradient of the loss with respect to it. Both start from the end.
        _set_transposed(w, d, e, rows, at(end, head * d * e))
        for i in range(d):
            take(at(dend, (head * d + i) * e), e, at(g, i * columns))
        clear(k_before, d)
        clear(dv_before, e)
        for t in range(steps - 1, -1, -1):
            n = (b * steps + t) * heads + h
            take(at(q_table, n * d), d, q)
            take(at(k_table, n * d), d, k)
            take(at(dy_table, n * e), e, dy)
            take(at(error_table, n * e), e, error)
            rate = spread(beta_table[n], none)
            for c in range(0, e, lanes(none)):
                wrote = rate * load(error, c, none)
                store(update, c, wrote)
                store(undo, c, none - wrote)
            # g first takes what the step before, which is later in time, left for it; then the reading of this step.
            write_write_read_both(g, d, columns, k_before, dv_before, q, dy, k, kg, update, dk, partial)
            for c in range(0, e, lanes(none)):
                store(dv, c, rate * load(kg, c, none))
                store(dv_before, c, none - rate * load(kg, c, none))
            read_write_read(w, e, rows, dy, dq, undo, k, dv, held)
            for i in range(0, d, lanes(none)):
                store(dk, i, load(dk, i, none) - load(held, i, none))
                store(k_before, i, load(k, i, none))
            put(dq, d, at(dq_table, n * d))
            put(dk, d, at(dk_table, n * d))
            put(dv, e, at(dv_table, n * e))
            dbeta_table[n] = dot(kg, error, e)
            if reset != 0 and segment[b * steps + t] == t:
                # Before this step the matrix was zero: no gradient goes further back.
                clear(g, d * columns)
                clear(k_before, d)
                clear(dv_before, e)
                if t > 0:
                    # What stood before the reset is lost; write it again from the start of its segment.
                    start = segment[b * steps + t - 1]
                    clear(w, e * rows)
                    if start < 0 and has_state:
                        _set_transposed(w, d, e, rows, at(state, head * d * e))
                    for s in range(max(start, 0), t):
                        n = (b * steps + s) * heads + h
                        take(at(k_table, n * d), d, k)
                        rate = spread(beta_table[n], none)
                        for c in range(0, e, lanes(none)):
                            store(update, c, rate * load_first(error_table, n * e + c, e - c, none))
                        write(w, e, rows, update, k)
        write(g, d, columns, k_before, dv_before)
        for i in range(d):
            put(at(g, i * columns), e, at(dstate, (head * d + i) * e))


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    y: Tensor,
    end: Tensor,
    error: Tensor | None,
) -> None:
    """Fill y, end and the saved errors."""
    b, t, h, d = q.shape
    e = v.shape[3]
    v_d, v_e = (1, d), (1, e)
    over_heads(
        _forward_heads,
        b * h,
        3 * t * end.numel(),
        ((d, e), v_e, v_e, v_e, v_e, v_d, v_d),
        (t, h, d, e),
        reset,
        (q, k, v, beta, state, y, end, error),
    )


def backward(
    dy: Tensor,
    dend: Tensor,
    q: Tensor,
    k: Tensor,
    beta: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    end: Tensor,
    error: Tensor,
    dq: Tensor,
    dk: Tensor,
    dv: Tensor,
    dbeta: Tensor,
    dstate: Tensor,
) -> None:
    """Fill the gradients of q, k, v, beta and of the incoming state."""
    b, t, h, d = q.shape
    e = dy.shape[3]
    v_d, v_e = (1, d), (1, e)
    over_heads(
        _backward_heads,
        b * h,
        6 * t * end.numel(),
        (
            (e, d), (d, e), (d + 15, 1), v_d, v_d, v_d, v_d, v_d, v_d,
            v_e, v_e, v_e, v_e, v_e, v_e, v_e,
        ),
        (t, h, d, e),
        segments(reset),
        (dy, dend, q, k, beta, state, end, error, dq, dk, dv, dbeta, dstate),
    )  # fmt: skip
