"""The self-referential recurrence on CPU cores: compiled by numba, each core runs its share of the heads.

`_loops.py` says how the loops are written; here they follow the equations of README.md. A row of a table belongs to
one step of one head, (b steps + t) heads + h; a matrix is d rows of its table.
"""

from math import exp

from torch import Tensor

from .._loops import add_outer, compiled, mat_vec, matrix, put, softmax, subtract_outer, take, vec_mat, vector
from .._threads import flags, over_heads, segments, table


@compiled
def _spread(rates, n_rates, out, d, columns):  # type: ignore[no-untyped-def]
    """Give every column the learning rate of its sub-matrix."""
    for c in range(out):
        columns[c] = rates[0]
    for c in range(out, out + d):
        columns[c] = rates[1 % n_rates]
    for c in range(out + d, out + 2 * d):
        columns[c] = rates[2 % n_rates]
    for c in range(out + 2 * d, out + 2 * d + n_rates):
        columns[c] = rates[3 % n_rates]


@compiled
def _set_matrix(w, weight, h, state, head):  # type: ignore[no-untyped-def]
    """Set w = weight + state; a negative head means a state of zero."""
    d, m = w.shape[0], weight.shape[1]
    for i in range(d):
        for c in range(m):
            w[i, c] = weight[h * d + i, c]
        if head >= 0:
            for c in range(m):
                w[i, c] += state[head * d + i, c]


@compiled
def _forward_heads(  # type: ignore[no-untyped-def]
    first, last, steps, heads, x, weight, state, reset, n_rates, y, end, q, k, beta, difference
):
    d, m, out = x.shape[1], weight.shape[1], y.shape[1]
    b_q, b_k, b_b = out, out + d, out + 2 * d
    save = q.shape[0] > 0
    dtype = weight.dtype
    w = matrix(d, m, dtype)
    xt, qt, kt, u, rates = vector(d, dtype), vector(d, dtype), vector(d, dtype), vector(d, dtype), vector(4, dtype)
    z, diff, write, columns = vector(m, dtype), vector(m, dtype), vector(m, dtype), vector(m, dtype)
    for head in range(first, last):
        b, h = head // heads, head % heads
        _set_matrix(w, weight, h, state, head if state.shape[0] > 0 else -1)
        for t in range(steps):
            n = (b * steps + t) * heads + h
            if reset.shape[0] > 0 and reset[b, t]:
                _set_matrix(w, weight, h, state, -1)
            take(x, n, xt)
            vec_mat(xt, w, z)
            put(z, y, n)
            for i in range(d):
                qt[i] = z[b_q + i]
                kt[i] = z[b_k + i]
            for i in range(n_rates):
                rates[i] = 1 / (1 + exp(-z[b_b + i]))
            softmax(qt, d)
            softmax(kt, d)
            for i in range(d):
                u[i] = qt[i] - kt[i]
            vec_mat(u, w, diff)
            _spread(rates, n_rates, out, d, columns)
            for c in range(m):
                write[c] = columns[c] * diff[c]
            add_outer(w, kt, write)
            if save:
                put(qt, q, n)
                put(kt, k, n)
                put(rates, beta, n)
                put(diff, difference, n)
        for i in range(d):
            for c in range(m):
                end[head * d + i, c] = w[i, c] - weight[h * d + i, c]


@compiled
def _backward_heads(  # type: ignore[no-untyped-def]
    first, last, steps, heads, dy, dend, x, weight, state, segment, end, q, k, beta, difference, dx, dstate, dreset
):
    d, m, out, n_rates = x.shape[1], weight.shape[1], dy.shape[1], beta.shape[1]
    b_q, b_k, b_b = out, out + d, out + 2 * d
    bounds = (0, b_q, b_k, b_b, m)
    dtype = weight.dtype
    zero = dtype.type(0)
    w, g = matrix(d, m, dtype), matrix(d, m, dtype)
    xt, qt, kt, u, rates = vector(d, dtype), vector(d, dtype), vector(d, dtype), vector(d, dtype), vector(4, dtype)
    dk, du, dxt = vector(d, dtype), vector(d, dtype), vector(d, dtype)
    columns, diff, write = vector(m, dtype), vector(m, dtype), vector(m, dtype)
    kg, dz = vector(m, dtype), vector(m, dtype)
    for head in range(first, last):
        b, h = head // heads, head % heads
        # w is the matrix, g the gradient of the loss with respect to it; both start from the end of the sequence.
        _set_matrix(w, weight, h, end, head)
        for i in range(d):
            for c in range(m):
                g[i, c] = dend[head * d + i, c]
        for t in range(steps - 1, -1, -1):
            n = (b * steps + t) * heads + h
            take(x, n, xt)
            take(q, n, qt)
            take(k, n, kt)
            take(beta, n, rates)
            take(difference, n, diff)
            _spread(rates, n_rates, out, d, columns)
            for c in range(m):
                write[c] = columns[c] * diff[c]
            subtract_outer(w, kt, write)
            vec_mat(kt, g, kg)
            mat_vec(g, write, dk)
            for c in range(b_b, m):
                dz[c] = zero
            for part in range(4):
                total = zero
                for c in range(bounds[part], bounds[part + 1]):
                    total += kg[c] * diff[c]
                rate = rates[part % n_rates]
                dz[b_b + part % n_rates] += total * rate * (1 - rate)
            for c in range(m):
                kg[c] *= columns[c]
            mat_vec(w, kg, du)
            # Through the softmaxes, back to what the matrix put out as q and k.
            along_q, along_k = zero, zero
            for i in range(d):
                u[i] = qt[i] - kt[i]
                dk[i] -= du[i]
                along_q += du[i] * qt[i]
                along_k += dk[i] * kt[i]
            for i in range(d):
                dz[b_q + i] = qt[i] * (du[i] - along_q)
                dz[b_k + i] = kt[i] * (dk[i] - along_k)
            take(dy, n, dz)
            mat_vec(w, dz, dxt)
            put(dxt, dx, n)
            add_outer(g, u, kg)
            add_outer(g, xt, dz)
            if segment.shape[0] > 0 and segment[b, t] == t:
                # Before this step the matrix was `weight` itself: the gradient goes there and no further back.
                for i in range(d):
                    for c in range(m):
                        dreset[head * d + i, c] += g[i, c]
                        g[i, c] = zero
                if t > 0:
                    # What stood before the reset is lost; write it again from the start of its segment.
                    start = segment[b, t - 1]
                    _set_matrix(w, weight, h, state, head if start < 0 and state.shape[0] > 0 else -1)
                    for s in range(max(start, 0), t):
                        n = (b * steps + s) * heads + h
                        take(k, n, kt)
                        take(beta, n, rates)
                        _spread(rates, n_rates, out, d, columns)
                        for c in range(m):
                            write[c] = columns[c] * difference[n, c]
                        add_outer(w, kt, write)
        for i in range(d):
            for c in range(m):
                dstate[head * d + i, c] = g[i, c]


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
    b, t, h, _ = x.shape
    over_heads(
        _forward_heads,
        b * h,
        3 * t * end.numel(),
        t,
        h,
        *(table(each, x) for each in (x, weight, state)),
        flags(reset),
        learning_rates,
        *(table(each, x) for each in (y, end, *(saved or (None,) * 4))),
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
    b, t, h, _ = x.shape
    over_heads(
        _backward_heads,
        b * h,
        7 * t * end.numel(),
        t,
        h,
        *(table(each, x) for each in (dy, dend, x, weight, state)),
        segments(reset),
        *(table(each, x) for each in (end, *saved, dx, dstate, dreset)),
    )
