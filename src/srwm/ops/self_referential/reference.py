"""The self-referential recurrence, one line per equation: the specification the kernels must meet."""

import math

import torch
from torch import Tensor

from .options import L2_EPS, KeyMap, Options, column_widths


def self_referential_reference(
    x: Tensor, weight: Tensor, state: Tensor, reset: Tensor | None, options: Options
) -> tuple[Tensor, Tensor]:
    """Run the recurrence step by step (paper, Eqs. 5-8, and the gates; the maths is in README.md beside this file).

    Args:
        x: inputs [b, t, h, d].
        weight: initial matrix [h, d, m], columns y | q | k | beta | forget.
        state: change of the matrix so far [b, h, d, m].
        reset: bool [b, t] or None; where true, the change is zeroed before that step.
        options: which variant of the rule this is.

    Returns:
        y [b, t, h, out] and the state after the last step [b, h, d, m].
    """
    columns = column_widths(options, *weight.shape[1:])
    ys = []
    for t in range(x.shape[1]):
        if reset is not None:
            state = state.masked_fill(reset[:, t, None, None, None], 0.0)
        w = weight + state
        y, q, k, beta, forget = torch.einsum("bhd,bhdm->bhm", x[:, t], w).split(columns, dim=-1)
        q, k, beta = map_key(q, options.key_map), map_key(k, options.key_map), beta.sigmoid()
        difference = torch.einsum("bhd,bhdm->bhm", q - k, w)
        if options.difference_clip < math.inf:
            difference = difference.clamp(-options.difference_clip, options.difference_clip)
        write = spread_rates(beta, columns) * difference
        if options.forget_gates:
            forget = (forget + options.forget_bias).sigmoid()
            forget = options.forget_min + (options.forget_max - options.forget_min) * forget
            state = (1 - spread_gates(forget, columns))[:, :, None] * state
        state = state + torch.einsum("bhd,bhm->bhdm", k, write)
        ys.append(y)
    if not ys:
        return x.new_zeros(*x.shape[:3], columns[0]), state.clone()
    return torch.stack(ys, dim=1), state


def map_key(z: Tensor, key_map: KeyMap) -> Tensor:
    """Make a key or a query of what the matrix put out: positive with sum one, or of unit length with its signs."""
    if key_map == "softmax":
        return z.softmax(dim=-1)
    return z * (z.square().sum(dim=-1, keepdim=True) + L2_EPS).rsqrt()


def spread_rates(beta: Tensor, columns: list[int]) -> Tensor:
    """Give every column of the matrix the learning rate of its sub-matrix: [..., 4 or 1] -> [..., m].

    The columns of the gates have that of the beta columns.
    """
    out, query, key, *others = columns
    rates = beta.split(1, dim=-1) * (4 if beta.shape[-1] == 1 else 1)
    widths = (out, query, key, sum(others))
    return torch.cat([rate.expand(*beta.shape[:-1], n) for rate, n in zip(rates, widths, strict=True)], dim=-1)


def spread_gates(forget: Tensor, columns: list[int]) -> Tensor:
    """Give every column what it forgets; of two gates, the first has the y columns: [..., 2 or 1] -> [..., m]."""
    out, *others = columns
    first, last = forget[..., :1], forget[..., -1:]
    return torch.cat([first.expand(*forget.shape[:-1], out), last.expand(*forget.shape[:-1], sum(others))], dim=-1)
