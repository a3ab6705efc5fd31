"""The delta rule on CPU cores: compiled by numba, each core runs its share of the heads.

`_loops.py` says how the loops are written; here they follow the equations of README.md. A row of a table belongs to
one step of one head, (b steps + t) heads + h; a matrix is d rows of its table.
"""

from torch import Tensor

from .._loops import add_outer, compiled, mat_vec, matrix, put, subtract_outer, take, vec_mat, vector
from .._threads import flags, over_heads, segments, table


@compiled
def _set_matrix(w, state, head):  # type: ignore[no-untyped-def]
    """Set w to the state of a head; a negative head means zero."""
    rows, columns = w.shape
    zero = w.dtype.type(0)
    for i in range(rows):
        for c in range(columns):
            w[i, c] = zero
    if head >= 0:
        for i in range(rows):
            for c in range(state.shape[1]):
                w[i, c] = state[head * rows + i, c]


@compiled
def _forward_heads(  # type: ignore[no-untyped-def]
    first, last, steps, heads, q, k, v, beta, state, reset, y, end, error
):
    d, e = q.shape[1], v.shape[1]
    save = error.shape[0] > 0
    dtype = v.dtype
    w = matrix(d, e, dtype)
    qt, kt = vector(d, dtype), vector(d, dtype)
    vt, old, write, yt = vector(e, dtype), vector(e, dtype), vector(e, dtype), vector(e, dtype)
    for head in range(first, last):
        b, h = head // heads, head % heads
        _set_matrix(w, state, head if state.shape[0] > 0 else -1)
        for t in range(steps):
            n = (b * steps + t) * heads + h
            if reset.shape[0] > 0 and reset[b, t]:
                _set_matrix(w, state, -1)
            take(q, n, qt)
            take(k, n, kt)
            take(v, n, vt)
            rate = beta[n, 0]
            vec_mat(kt, w, old)
            for c in range(e):
                vt[c] -= old[c]
                write[c] = rate * vt[c]
            add_outer(w, kt, write)
            vec_mat(qt, w, yt)
            put(yt, y, n)
            if save:
                put(vt, error, n)
        for i in range(d):
            for c in range(e):
                end[head * d + i, c] = w[i, c]


@compiled
def _backward_heads(  # type: ignore[no-untyped-def]
    first, last, steps, heads, dy, dend, q, k, beta, state, segment, end, error, dq, dk, dv, dbeta, dstate
):
    d, e = q.shape[1], error.shape[1]
    dtype = error.dtype
    zero = dtype.type(0)
    w, g = matrix(d, e, dtype), matrix(d, e, dtype)
    qt, kt, dqt, dkt, old = vector(d, dtype), vector(d, dtype), vector(d, dtype), vector(d, dtype), vector(d, dtype)
    dyt, et, write, kg = vector(e, dtype), vector(e, dtype), vector(e, dtype), vector(e, dtype)
    for head in range(first, last):
        b, h = head // heads, head % heads
        # w is the matrix, g the gradient of the loss with respect to it; both start from the end of the sequence.
        _set_matrix(w, end, head)
        _set_matrix(g, dend, head)
        for t in range(steps - 1, -1, -1):
            n = (b * steps + t) * heads + h
            take(q, n, qt)
            take(k, n, kt)
            take(dy, n, dyt)
            take(error, n, et)
            rate = beta[n, 0]
            for c in range(e):
                write[c] = rate * et[c]
            mat_vec(w, dyt, dqt)
            put(dqt, dq, n)
            add_outer(g, qt, dyt)
            subtract_outer(w, kt, write)
            vec_mat(kt, g, kg)
            total = zero
            for c in range(e):
                total += kg[c] * et[c]
                kg[c] *= rate
            dbeta[n, 0] = total
            put(kg, dv, n)
            mat_vec(g, write, dkt)
            mat_vec(w, kg, old)
            for i in range(d):
                dkt[i] -= old[i]
            put(dkt, dk, n)
            subtract_outer(g, kt, kg)
            if segment.shape[0] > 0 and segment[b, t] == t:
                # Before this step the matrix was zero, whatever went before: no gradient goes further back.
                _set_matrix(g, dend, -1)
                if t > 0:
                    # What stood before the reset is lost; write it again from the start of its segment.
                    start = segment[b, t - 1]
                    _set_matrix(w, state, head if start < 0 and state.shape[0] > 0 else -1)
                    for s in range(max(start, 0), t):
                        n = (b * steps + s) * heads + h
                        take(k, n, kt)
                        rate = beta[n, 0]
                        for c in range(e):
                            write[c] = rate * error[n, c]
                        add_outer(w, kt, write)
        for i in range(d):
            for c in range(e):
                dstate[head * d + i, c] = g[i, c]


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
    """Fill y, end and, where they are kept, the errors."""
    b, t, h, _ = q.shape
    over_heads(
        _forward_heads,
        b * h,
        3 * t * end.numel(),
        t,
        h,
        *(table(each, v) for each in (q, k, v, beta.unsqueeze(-1), state)),
        flags(reset),
        *(table(each, v) for each in (y, end, error)),
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
    b, t, h, _ = q.shape
    over_heads(
        _backward_heads,
        b * h,
        7 * t * end.numel(),
        t,
        h,
        *(table(each, end) for each in (dy, dend, q, k, beta.unsqueeze(-1), state)),
        segments(reset),
        *(table(each, end) for each in (end, error, dq, dk, dv, dbeta.unsqueeze(-1), dstate)),
    )
