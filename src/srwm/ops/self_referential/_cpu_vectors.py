"""The vectors of one step on a CPU core: from what the matrix put out to keys, rates and gates, and back.

Columns are y | q | k | beta | forget; those of the gates have the learning rate of the beta columns.
"""

import functools
import math

import numpy as np
import torch
from torch import Tensor

from .._cpu import (
    absolute,
    at,
    dot,
    given,
    if_negative,
    inlined,
    lanes,
    load,
    load_first,
    padded,
    sigmoid,
    softmax,
    spread,
    store,
    store_first,
    take,
    zeros,
)
from .options import L2_EPS, Options

FORGET_MIN, FORGET_RANGE, FORGET_BIAS, CLIP = range(4)
"""Places in what `settings` returns."""


def settings(options: Options, dtype: torch.dtype) -> Tensor | None:
    """Those of the options that loops read as numbers; None where none is needed, as in the paper's rule."""
    if not options.forget_gates and options.difference_clip == math.inf:
        return None
    numbers = (options.forget_min, options.forget_max - options.forget_min, options.forget_bias)
    return _table((*numbers, options.difference_clip), dtype)


@functools.lru_cache(maxsize=64)
def _table(numbers: tuple[float, ...], dtype: torch.dtype) -> Tensor:
    return torch.tensor(numbers, dtype=dtype)


# Forward.


@inlined
def make_keys(z, d, is_l2, q, k, scales):  # type: ignore[no-untyped-def]
    """Set q and k to what is made of the first 2 d numbers of z."""
    if is_l2:
        scales[0] = _unit_length(z, d, q)
        scales[1] = _unit_length(at(z, d), d, k)
    else:
        softmax(z, d, q)
        softmax(at(z, d), d, k)


@inlined
def _unit_length(z, n, result):  # type: ignore[no-untyped-def]
    """Set result to z, scaled to unit length, and return the scale."""
    zero = zeros(z, 1)
    scale = 1 / np.sqrt(dot(z, z, n) + L2_EPS)
    for i in range(0, n, lanes(zero)):
        store(result, i, spread(scale, zero) * load_first(z, i, n - i, zero))
    return scale


@inlined
def make_rates(z, n_rates, n_gates, table, beta):  # type: ignore[no-untyped-def]
    """Set beta to the learning rates, then what each gate lets go of; z is what the matrix put out for them."""
    none = zeros(z, 1)
    for gate in range(n_gates):
        z[n_rates + gate] += table[FORGET_BIAS]
    store(beta, 0, sigmoid(load_first(z, 0, n_rates + n_gates, none), spread(1.0, none)))
    for gate in range(n_rates, n_rates + n_gates):
        beta[gate] = table[FORGET_MIN] + table[FORGET_RANGE] * beta[gate]


@inlined
def spread_rates(beta, n_rates, out, d, m, rates):  # type: ignore[no-untyped-def]
    """Give every column, and every number of padding, the learning rate of its sub-matrix."""
    zero = zeros(beta, 1)
    first = 0
    for part in range(4):
        last = out + part * d if part < 3 else padded(m, beta)
        rate = spread(beta[part % n_rates], zero)
        # What is written beyond a part is overwritten with the next one; beyond the last is room.
        for c in range(first, last, lanes(zero)):
            store(rates, c, rate)
        first = last


@inlined
def spread_keeps(beta, n_rates, n_gates, out, m, keeps):  # type: ignore[no-untyped-def]
    """Give every column, and every number of padding, what its gate keeps."""
    zero = zeros(beta, 1)
    keep_y, keep = spread(1 - beta[n_rates], zero), spread(1 - beta[n_rates + n_gates - 1], zero)
    for c in range(0, out, lanes(zero)):
        store(keeps, c, keep_y)
    for c in range(out, padded(m, beta), lanes(zero)):
        store(keeps, c, keep)


@inlined
def clip(v, n, table):  # type: ignore[no-untyped-def]
    """Hold n numbers to the limit of differences, if there is one; NaN stays NaN."""
    if given(table):
        zero = zeros(v, 1)
        limit = spread(table[CLIP], zero)
        for i in range(0, n, lanes(zero)):
            each = load(v, i, zero)
            each = if_negative(limit - each, limit, each)
            store(v, i, if_negative(each + limit, zero - limit, each))


# Backward.


@inlined
def take_update(n, d, m, k_table, beta_table, difference_table, n_rates, n_gates, k, beta, rates, update):  # type: ignore[no-untyped-def]
    """Take the k, rates and gates of a step, and compute what it wrote under k."""
    take(at(k_table, n * d), d, k)
    take(at(beta_table, n * (n_rates + n_gates)), n_rates + n_gates, beta)
    spread_rates(beta, n_rates, m - 2 * d - n_rates - n_gates, d, m, rates)
    none = zeros(k, 1)
    for c in range(0, m, lanes(none)):
        store(update, c, load(rates, c, none) * load_first(difference_table, n * m + c, m - c, none))


@inlined
def weigh(rates, kg, difference, m, table, weighted):  # type: ignore[no-untyped-def]
    """Set `weighted` to the gradient of what the matrix held under q, less what it held under k: none where clipped."""
    none = zeros(rates, 1)
    for c in range(0, m, lanes(none)):
        each = load(rates, c, none) * load(kg, c, none)
        if given(table):
            size = absolute(load_first(difference, c, m - c, none))
            each = if_negative(size - spread(table[CLIP], none), each, none)
        store(weighted, c, each)


@inlined
def through_keys(q, k, dq, dk, d, is_l2, scales, dz):  # type: ignore[no-untyped-def]
    """Set the first 2 d numbers of dz to the gradient of what the matrix put out as q and k."""
    if is_l2:
        _through_map(q, dq, d, scales[0], False, dz)
        _through_map(k, dk, d, scales[1], False, at(dz, d))
    else:
        _through_map(q, dq, d, 1.0, True, dz)
        _through_map(k, dk, d, 1.0, True, at(dz, d))


@inlined
def _through_map(p, dp, d, scale, is_softmax, dz):  # type: ignore[no-untyped-def]
    """Set dz to the gradient of z: p is its softmax, or `scale` times it, and dp the gradient of that."""
    none = zeros(p, 1)
    along, scales = spread(dot(p, dp, d), none), spread(scale, none)
    for i in range(0, d, lanes(none)):
        p_i, dp_i = load(p, i, none), load(dp, i, none)
        store_first(dz, i, d - i, p_i * (dp_i - along) if is_softmax else scales * (dp_i - along * p_i))


@inlined
def through_rates(kg, difference, beta, n_rates, out, d, m, dbeta):  # type: ignore[no-untyped-def]
    """Set dbeta to the gradient of what the matrix put out as rates."""
    first = 0
    for part in range(n_rates):
        last = m if part == n_rates - 1 else out + part * d
        along = dot(at(kg, first), at(difference, first), last - first)
        dbeta[part] = along * beta[part] * (1 - beta[part])
        first = last
