"""The delta rule on CPU cores: compiled by numba, each core runs its share of the heads.

`../_cpu/README.md` says how kernels are written; here they follow the equations of README.md. A row of a table belongs
to one step of one head, (b steps + t) heads + h. What a loop over steps needs of the next step is asked for during this
one, because it lies far away in memory.
"""

import numpy as np
from torch import Tensor

from .. import _checkpoints
from .._cpu import (
    at,
    clear,
    dot,
    expect_to_read,
    expect_to_write,
    given,
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
    read,
    read_write_read,
    set_limits,
    set_limits_of_rows,
    spread,
    store,
    take,
    take_matrix,
    take_transposed,
    two_writes_two_reads,
    viewed,
    write,
    write_read,
    zeros,
)
from ..kernels import segments
from . import _decay_cpu
from ._arguments import GROWTH, DeltaGradients, DeltaInputs, DeltaSaved
from ._decay_cpu import decay_write_read, jumps_when_undone, scale, take_update


@kernel()
def _forward_head(head, sizes, scratch, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, e, interval = sizes
    w, old, error, update, y, limits = scratch
    q_table, k_table, v_table, beta_table, state, decay_table, y_table, end = tables[:8]
    error_table, checkpoints, reset, jump_table = tables[8:]
    last_jumps = viewed(jump_table, np.int32(0))
    intervals = (steps + interval - 1) // interval
    resets, is_reset = given(reset), viewed(reset, np.uint8(0))
    has_state, decays, save = given(state), given(decay_table), given(error_table)
    columns = padded(e, w)
    none = zeros(w, 1)
    b, h = head // heads, head % heads
    take_matrix(at(state, head * d * e) if has_state else state, d, e, w)
    jump, left, is_start, undone = -1, interval, True, 1.0
    for t in range(steps):
        n = (b * steps + t) * heads + h
        if save and left == 0:
            left, is_start = interval, True
            last_jumps[head * intervals + t // interval - 1] = jump
            stored = at(checkpoints, (head * (intervals - 1) + t // interval - 1) * d * e)
            put_matrix(w, d, e, stored)
        if resets and is_reset[b * steps + t]:
            clear(w, d * columns)
            is_start = True
        if save and is_start:
            set_limits(w, d, columns, GROWTH, limits)
        left -= 1
        q, k = at(q_table, n * d), at(k_table, n * d)
        read(w, d, columns, k, old)
        if decays:
            scale(old, e, decay_table[n])
        rate = spread(beta_table[n], none)
        for c in range(0, e, lanes(none)):
            error_c = load_first(v_table, n * e + c, e - c, none) - load(old, c, none)
            store(error, c, error_c)
            store(update, c, rate * error_c)
        if decays:
            decay_write_read(w, d, columns, decay_table[n], k, update, q, y)
        else:
            write_read(w, d, columns, k, update, q, y)
        put(y, e, at(y_table, n * e))
        expect_to_read(at(q_table, (n + heads) * d), d)
        expect_to_read(at(k_table, (n + heads) * d), d)
        expect_to_read(at(v_table, (n + heads) * e), e)
        expect_to_read(at(beta_table, n + heads), 1)
        if decays:
            expect_to_read(at(decay_table, n + heads), 1)
        expect_to_write(at(y_table, (n + heads) * e), e)
        if save:
            if is_start:
                # No jump: what undoing it leaves touches nothing but the gradient of its own key.
                raise_limits(update, e, largest_of(k, d), GROWTH, limits)
                is_start, undone = False, 1.0
            if decays:
                jumped, undone = jumps_when_undone(update, e, largest_of(k, d), decay_table[n], undone, limits)
                if jumped:
                    jump = t
            elif jumps(update, e, largest_of(k, d), GROWTH, limits):
                jump = t
            put(error, e, at(error_table, n * e))
            expect_to_write(at(error_table, (n + heads) * e), e)
    if save:
        last_jumps[head * intervals + intervals - 1] = jump
    put_matrix(w, d, e, at(end, head * d * e))


def _clear_scratch(sizes, scratch):  # type: ignore[no-untyped-def]
    _, _, d, e, _ = sizes
    as_rows, partial, limits, k_none = scratch[2], scratch[3], scratch[4], scratch[15]
    clear(at(as_rows, d * padded(e, as_rows)), 15 * padded(e, as_rows))
    clear(k_none, d)
    clear(limits, e)
    clear(partial, padded(d, partial) * lanes(zeros(partial, 1)))


@kernel(_clear_scratch)
def _backward_head(head, sizes, scratch, tables):  # type: ignore[no-untyped-def]
    steps, heads, d, e, interval = sizes
    w, g, as_rows, partial, limits, dy, update, undo, kg, de, minus_de, k, dq, dk, old, k_none = scratch
    dy_table, dend, q_table, k_table, beta_table, state, end = tables[:7]
    error_table, checkpoints, reset, jump_table = tables[7:11]
    dq_table, dk_table, dv_table, dbeta_table, dstate = tables[11:]
    resets, segment = given(reset), viewed(reset, np.int32(0))
    last_jumps = viewed(jump_table, np.int32(0))
    intervals = (steps + interval - 1) // interval
    columns, rows = padded(e, w), padded(d, w)
    none = zeros(w, 1)
    b, h = head // heads, head % heads
    # w is the matrix, transposed; g is the gradient of the loss with respect to it. Both start from the end.
    take_transposed(at(end, head * d * e), nowhere(w), d, e, as_rows, w)
    take_matrix(at(dend, head * d * e), d, e, g)
    base = (steps - 1) // interval * interval
    if resets:
        base = max(base, segment[b * steps + steps - 1])
    stop = max(base, last_jumps[head * intervals + intervals - 1])
    is_end = True
    for t in range(steps - 1, -1, -1):
        n = (b * steps + t) * heads + h
        if is_end:
            # No step of this segment comes after this one.
            clear(minus_de, e)
            k_after = k_none
        rate = spread(beta_table[n], none)
        take(at(dy_table, n * e), e, dy)
        take_update(n, d, e, k_table, beta_table, error_table, k, update)
        for c in range(0, e, lanes(none)):
            store(undo, c, none - load(update, c, none))
        expect_to_read(at(dy_table, (n - heads) * e), e)
        expect_to_read(at(q_table, (n - heads) * d), d)
        expect_to_read(at(k_table, (n - heads) * d), d)
        expect_to_read(at(beta_table, n - heads), 1)
        expect_to_read(at(error_table, (n - heads) * e), e)
        expect_to_write(at(dq_table, (n - heads) * d), d)
        expect_to_write(at(dk_table, (n - heads) * d), d)
        expect_to_write(at(dv_table, (n - heads) * e), e)
        expect_to_write(at(dbeta_table, n - heads), 1)
        # What the step after this one takes from g is computed together with what this one adds to it.
        q = at(q_table, n * d)
        two_writes_two_reads(g, d, columns, k_after, minus_de, q, dy, nowhere(g), k, kg, update, dk, partial)
        dbeta_table[n] = dot(kg, at(error_table, n * e), e)
        for c in range(0, e, lanes(none)):
            de_c = rate * load(kg, c, none)
            store(de, c, de_c)
            store(minus_de, c, none - de_c)
        put(de, e, at(dv_table, n * e))
        is_base = t == base
        if t == stop:
            # The matrix before this step cannot be had by undoing: it is written again.
            along = dot(update, dy, e)
            if (resets and base == segment[b * steps + t]) or (base == 0 and not given(state)):
                clear(w, e * rows)
                clear(limits, e)
            else:
                if base == 0:
                    take_transposed(at(state, head * d * e), nowhere(w), d, e, as_rows, w)
                else:
                    stored = at(checkpoints, (head * (intervals - 1) + base // interval - 1) * d * e)
                    take_transposed(stored, nowhere(w), d, e, as_rows, w)
                if t > base:
                    set_limits_of_rows(w, e, rows, GROWTH, limits)
            stop = base
            if t > base:
                for s in range(base, t):
                    each = (b * steps + s) * heads + h
                    take_update(each, d, e, k_table, beta_table, error_table, k, update)
                    write(w, e, rows, update, k)
                    if s == base:
                        raise_limits(update, e, largest_of(k, d), GROWTH, limits)
                    if jumps(update, e, largest_of(k, d), GROWTH, limits):
                        stop = s
            # What is read after the step: from before it, and from what it wrote.
            read(w, e, rows, dy, dq)
            for i in range(0, d, lanes(none)):
                k_i = load_first(k_table, n * d + i, d - i, none)
                store(dq, i, multiply_add(spread(along, none), k_i, load(dq, i, none)))
            read(w, e, rows, de, old)
        else:
            read_write_read(w, e, rows, dy, dq, undo, k, de, old)
        put(dq, d, at(dq_table, n * d))
        for i in range(0, d, lanes(none)):
            store(dk, i, load(dk, i, none) - load(old, i, none))
        put(dk, d, at(dk_table, n * d))
        k_after = at(k_table, n * d)
        is_end = resets and segment[b * steps + t] == t
        if is_end:
            # Before this step the matrix was zero, whatever went before: no gradient goes further back.
            clear(g, d * columns)
        elif t == 0:
            write(g, d, columns, k_after, minus_de)
        if is_base and t > 0:
            base = (t - 1) // interval * interval
            if resets:
                base = max(base, segment[b * steps + t - 1])
            # What stood before a reset is not at hand: undoing cannot go on from there.
            stop = t - 1 if is_end else max(base, last_jumps[head * intervals + (t - 1) // interval])
    put_matrix(g, d, e, at(dstate, head * d * e))


def forward(inputs: DeltaInputs, y: Tensor, end: Tensor, saved: DeltaSaved | None) -> None:
    """Fill y, end and what is saved."""
    q, k, v, beta, state, decay, reset = inputs
    b, t, h, d = q.shape
    e = v.shape[3]
    error, checkpoints, last_jumps = saved or (None,) * 3
    interval = _checkpoints.steps_between(d, e, decay is not None)
    over_heads(
        _forward_head,
        heads=b * h,
        work=3 * t * end.numel(),
        sizes=(t, h, d, e, interval),
        scratch=((d, e), *[(1, e)] * 5),
        tables=(q, k, v, beta, state, decay, y, end, error, checkpoints, reset, last_jumps),
    )


def backward(
    dy: Tensor, dend: Tensor, inputs: DeltaInputs, end: Tensor, saved: DeltaSaved, gradients: DeltaGradients
) -> None:
    """Fill the gradients."""
    if inputs.decay is not None:
        _decay_cpu.backward(dy, dend, inputs, end, saved, gradients)
        return
    q, k, _, beta, state, _, reset = inputs
    b, t, h, d = q.shape
    e = dy.shape[3]
    over_heads(
        _backward_head,
        heads=b * h,
        work=7 * t * end.numel(),
        sizes=(t, h, d, e, _checkpoints.steps_between(d, e)),
        scratch=((e + 15, d), (d, e), (d + 15, e), (d + 15, 1), *[(1, e)] * 7, *[(1, d)] * 5),
        tables=(
            *(dy, dend, q, k, beta, state, end),
            *(saved.error, saved.checkpoints, None if reset is None else segments(reset), saved.last_jumps),
            *gradients[:5],
        ),
    )
