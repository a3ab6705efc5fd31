"""The recurrences once more, step by step, with everything in between: the lines of `srwm.ops.*.reference`."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from srwm.ops.self_referential.options import Options, column_widths
from srwm.ops.self_referential.reference import map_key, spread_gates, spread_rates

from .fast_matrix import FastCall, FastStep


def self_referential_steps(call: FastCall, options: Options) -> Iterator[FastStep]:
    """Run a self-referential matrix (paper, Eqs. 5-8, and the gates), as `self_referential_reference` does.

    The inputs of the call are those of the heads [b, t, h, d].
    """
    (x,), weight, change = call.inputs, call.weight, call.start
    columns = column_widths(options, *weight.shape[1:])
    for t in range(x.shape[1]):
        change = made_new(change, call.reset, t)
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
        yield FastStep(x[:, t], y, q, k, beta, forget, write, change)


def delta_rule_steps(call: FastCall) -> Iterator[FastStep]:
    """Run a delta rule (paper, Eqs. 2-4, and the decay), as `delta_rule_reference` does.

    The inputs of the call are q, k and v [b, t, h, d], beta [b, t, h] and, where it has one, the decay [b, t, h].
    """
    (q, k, v, beta, *gates), change = call.inputs, call.start
    decay = gates[0] if gates else None
    for t in range(q.shape[1]):
        change = made_new(change, call.reset, t)
        if decay is not None:
            change = decay[:, t, :, None, None] * change
        rate = beta[:, t, :, None]
        write = rate * (v[:, t] - torch.einsum("bhd,bhde->bhe", k[:, t], change))
        change = change + torch.einsum("bhd,bhe->bhde", k[:, t], write)
        y = torch.einsum("bhd,bhde->bhe", q[:, t], change)
        forget = rate[..., :0] if decay is None else 1 - decay[:, t, :, None]
        yield FastStep(q[:, t], y, q[:, t], k[:, t], rate, forget, write, change)


def delta_rule_call(
    heads: Sequence[Tensor | None], before: Tensor | None, after: Tensor, reset: Tensor | None
) -> FastCall:
    """The call for `delta_rule_steps` of a layer whose fast weights begin from nothing.

    Args:
        heads: what the layer gave to `srwm.ops.delta_rule`.
        before: the fast weights before the call [b, h, d, e]; None for a new state.
        after: the fast weights after it.
        reset: bool [b, t], the resets of the call.
    """
    inputs = tuple(each for each in heads if each is not None)
    return FastCall(inputs, after.new_zeros(after.shape[1:]), before is None, before, after, reset)


def fixed_steps(call: FastCall) -> Iterator[FastStep]:
    """Run a matrix that never changes; the inputs of the call are those of the heads [b, t, h, d]."""
    (x,), weight, change = call.inputs, call.weight, call.start
    b, h = x.shape[0], x.shape[2]
    none, write = x.new_zeros(b, h, 0), x.new_zeros(b, h, weight.shape[-1])
    for t in range(x.shape[1]):
        y = torch.einsum("bhd,hde->bhe", x[:, t], weight)
        yield FastStep(x[:, t], y, none, none, none, none, write, change)


def made_new(change: Tensor, reset: Tensor | None, t: int) -> Tensor:
    """The change without the rows that begin an episode at step t."""
    return change if reset is None else change.masked_fill(reset[:, t, None, None, None], 0.0)
