"""The heads of a delta rule, from one projection that holds q, k, v and beta."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .feature_maps import FeatureMap, apply_feature_map


class DeltaHeads(NamedTuple):
    """What a delta rule asks for, in the order in which `srwm.ops.delta_rule` takes it."""

    q: Float[Tensor, "b t h d"]
    k: Float[Tensor, "b t h d"]
    v: Float[Tensor, "b t h d"]
    beta: Float[Tensor, "b t h"]


def split_delta_heads(
    projected: Float[Tensor, "b t width"], num_heads: int, feature_map: FeatureMap, feature_map_eps: float = 0.0
) -> DeltaHeads:
    """Cut a projection into heads and apply phi and the sigmoid (paper, Eqs. 1-2).

    Args:
        projected: head after head, in each the columns q | k | v | beta of widths d, d, d and 1 [b, t, h (3 d + 1)].
        num_heads: h.
        feature_map: phi on q and k.
        feature_map_eps: see `apply_feature_map`.

    Returns:
        q, k and v [b, t, h, d], and beta [b, t, h].
    """
    width = projected.shape[-1] // num_heads
    head_dim = (width - 1) // 3
    q, k, v, beta = projected.unflatten(-1, (num_heads, width)).split([head_dim, head_dim, head_dim, 1], dim=-1)
    # Autocast raises a softmax to float32; back to one dtype, as the operator gets without it.
    q, k = (apply_feature_map(z, feature_map, feature_map_eps).to(v.dtype) for z in (q, k))
    return DeltaHeads(q, k, v, beta.squeeze(-1).sigmoid())


def read_delta_heads(heads: DeltaHeads, fast_weight: Float[Tensor, "b h d e"] | None) -> Float[Tensor, "b n h e"]:
    """Read from each head's fast weight matrix as if each of n inputs came next (paper, Eqs. 3-4).

    An input reads after its own write, q (W + beta k^T (v - k W)), which is written out here so that no matrix is
    copied for it.

    Args:
        heads: of n inputs.
        fast_weight: the matrices so far; None is zero.

    Returns:
        The outputs of the heads.
    """
    q, k, v, beta = heads
    overlap = (beta * (q * k).sum(dim=-1))[..., None]
    if fast_weight is None:
        return overlap * v
    both = torch.einsum("bnhd,bhde->bnhe", torch.cat([q, k], dim=1), fast_weight.to(q.dtype))
    read, old = both.chunk(2, dim=1)
    return read + overlap * (v - old)
