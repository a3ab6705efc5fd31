"""The heads of a delta rule, from one projection that holds q, k, v, beta and, where there is one, a gate."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from srwm.ops.checks import state_dtype

from .feature_maps import FeatureMap, apply_feature_map


class ForgetGate(NamedTuple):
    """How much a gate lets go of at a step: between `least` and `most`, and where between is what a head says."""

    least: float
    most: float
    bias: float
    """Added to what the projection gives, before the sigmoid."""


class DeltaHeads(NamedTuple):
    """What a delta rule asks for, see `srwm.ops.delta_rule`."""

    q: Float[Tensor, "b t h d"]
    k: Float[Tensor, "b t h d"]
    v: Float[Tensor, "b t h d"]
    beta: Float[Tensor, "b t h"]
    decay: Float[Tensor, "b t h"] | None = None


def split_delta_heads(
    projected: Float[Tensor, "b t width"],
    num_heads: int,
    feature_map: FeatureMap,
    feature_map_eps: float = 0.0,
    max_learning_rate: float = 1.0,
    gate: ForgetGate | None = None,
) -> DeltaHeads:
    """Cut a projection into heads and apply phi and the sigmoids (paper, Eqs. 1-2).

    Args:
        projected: head after head, in each the columns q | k | v | beta of widths d, d, d and 1 [b, t, h (3 d + 1)];
            with a gate, one more.
        num_heads: h.
        feature_map: phi on q and k.
        feature_map_eps: see `apply_feature_map`.
        max_learning_rate: what the sigmoid of beta is multiplied with.
        gate: of the head, if it has one.

    Returns:
        q, k and v [b, t, h, d], beta [b, t, h], and the same of the decay, or None without a gate.
    """
    width = projected.shape[-1] // num_heads
    head_dim = (width - 1) // 3
    columns = [head_dim, head_dim, head_dim, 1] if gate is None else [head_dim, head_dim, head_dim, 1, 1]
    q, k, v, beta, *gates = projected.unflatten(-1, (num_heads, width)).split(columns, dim=-1)
    # Autocast raises a softmax to float32; back to one dtype, as the operator gets without it.
    q, k = (apply_feature_map(z, feature_map, feature_map_eps).to(v.dtype) for z in (q, k))
    beta = max_learning_rate * beta.squeeze(-1).sigmoid()
    return DeltaHeads(q, k, v, beta, None if gate is None else decay_of(gates[0].squeeze(-1), gate))


def decay_of(z: Float[Tensor, "b t h"], gate: ForgetGate) -> Float[Tensor, "b t h"]:
    """Say what share of its matrix each head keeps, in float32 at least: half precision has next to nothing below 1."""
    share = (z.to(state_dtype(z)) + gate.bias).sigmoid()
    return 1 - (gate.least + (gate.most - gate.least) * share)


def read_delta_heads(heads: DeltaHeads, fast_weight: Float[Tensor, "b h d e"] | None) -> Float[Tensor, "b n h e"]:
    """Read from each head's fast weight matrix as if each of n inputs came next (paper, Eqs. 3-4).

    An input reads after its own write, q (W + beta k^T (v - k W)), which is written out here so that no matrix is
    copied for it; before it writes, W decays.

    Returns:
        The outputs of the heads.
    """
    q, k, v, beta, decay = heads
    overlap = (beta * (q * k).sum(dim=-1))[..., None]
    if fast_weight is None:
        return overlap * v
    both = torch.einsum("bnhd,bhde->bnhe", torch.cat([q, k], dim=1), fast_weight.to(q.dtype))
    if decay is not None:
        both = torch.cat([decay, decay], dim=1)[..., None].to(both.dtype) * both
    read, old = both.chunk(2, dim=1)
    return read + overlap * (v - old)
