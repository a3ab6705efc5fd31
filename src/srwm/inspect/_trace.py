"""The recurrences once more, step by step, with everything in between: the lines of `srwm.ops.*.reference`."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from srwm.ops.self_referential.options import Options, column_widths
from srwm.ops.self_referential.reference import map_key, spread_gates, spread_rates


class Step(NamedTuple):
    """What one matrix of each row and head did in one step; what a kind of matrix has not is of width zero."""

    read: Tensor
    """What the matrix was multiplied by for the output [b, h, d]."""
    y: Tensor
    """The output [b, h, e]."""
    query: Tensor
    """After its feature map [b, h, d]."""
    key: Tensor
    """After its feature map [b, h, d]."""
    beta: Tensor
    """Learning rates [b, h, r]."""
    forget: Tensor
    """The share of the change that each forget gate let go of [b, h, g]."""
    write: Tensor
    """What was added under the key [b, h, m]: the change, what was kept of it, grew by the outer product of `key` and
    `write`."""
    change: Tensor
    """The change of the matrix after the step [b, h, d, m]."""


def trace_self_referential(
    x: Tensor, weight: Tensor, change: Tensor, reset: Tensor | None, options: Options
) -> Iterator[Step]:
    """Run a self-referential matrix (paper, Eqs. 5-8, and the gates), as `self_referential_reference` does."""
    columns = column_widths(options, *weight.shape[1:])
    for t in range(x.shape[1]):
        change = _made_new(change, reset, t)
        w = weight + change
        y, q, k, beta, forget = torch.einsum("bhd,bhdm->bhm", x[:, t], w).split(columns, dim=-1)
        q, k, beta = map_key(q, options.key_map), map_key(k, options.key_map), beta.sigmoid()
        difference = torch.einsum("bhd,bhdm->bhm", q - k, w)
        if options.difference_clip < math.inf:
            difference = difference.clamp(-options.difference_clip, options.difference_clip)
        write = spread_rates(beta, columns) * difference
        forget = (
            options.forget_min + (options.forget_max - options.forget_min) * (forget + options.forget_bias).sigmoid()
        )
        if options.forget_gates:
            change = (1 - spread_gates(forget, columns))[:, :, None] * change
        change = change + torch.einsum("bhd,bhm->bhdm", k, write)
        yield Step(x[:, t], y, q, k, beta, forget, write, change)


def trace_delta_rule(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, change: Tensor, decay: Tensor | None, reset: Tensor | None
) -> Iterator[Step]:
    """Run a delta rule (paper, Eqs. 2-4, and the decay); the arguments are those of `delta_rule_reference`."""
    for t in range(q.shape[1]):
        change = _made_new(change, reset, t)
        if decay is not None:
            change = decay[:, t, :, None, None] * change
        rate = beta[:, t, :, None]
        write = rate * (v[:, t] - torch.einsum("bhd,bhde->bhe", k[:, t], change))
        change = change + torch.einsum("bhd,bhe->bhde", k[:, t], write)
        y = torch.einsum("bhd,bhde->bhe", q[:, t], change)
        forget = rate[..., :0] if decay is None else 1 - decay[:, t, :, None]
        yield Step(q[:, t], y, q[:, t], k[:, t], rate, forget, write, change)


def trace_fixed(x: Tensor, weight: Tensor, change: Tensor) -> Iterator[Step]:
    """Run a matrix that never changes."""
    b, h = x.shape[0], x.shape[2]
    none, write = x.new_zeros(b, h, 0), x.new_zeros(b, h, weight.shape[-1])
    for t in range(x.shape[1]):
        y = torch.einsum("bhd,hde->bhe", x[:, t], weight)
        yield Step(x[:, t], y, none, none, none, none, write, change)


def _made_new(change: Tensor, reset: Tensor | None, t: int) -> Tensor:
    return change if reset is None else change.masked_fill(reset[:, t, None, None, None], 0.0)
