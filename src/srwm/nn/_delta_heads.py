"""The delta rule over heads, from one projection that holds q, k, v and beta."""

from jaxtyping import Bool, Float
from torch import Tensor

from srwm.ops import Backend, delta_rule

from ._feature_maps import FeatureMap, apply_feature_map


def delta_heads(
    projected: Float[Tensor, "b t width"],
    fast_weight: Float[Tensor, "b h d e"] | None,
    reset: Bool[Tensor, "b t"] | None,
    *,
    num_heads: int,
    feature_map: FeatureMap,
    feature_map_eps: float,
    backend: Backend,
) -> tuple[Float[Tensor, "b t hidden"], Float[Tensor, "b h d e"]]:
    """Write to and read from each head's fast weight matrix (paper, Eqs. 1-4).

    Args:
        projected: head after head, in each the columns q | k | v | beta of widths d, d, d and 1 [b, t, h (3 d + 1)].
        fast_weight: the matrices so far; None is zero.
        reset: where they are zeroed before a step.
        num_heads: h.
        feature_map: phi on q and k.
        feature_map_eps: see `apply_feature_map`.
        backend: which kernel runs.

    Returns:
        The concatenated outputs of the heads [b, t, h d], and the matrices after the last step.
    """
    width = projected.shape[-1] // num_heads
    head_dim = (width - 1) // 3
    q, k, v, beta = projected.unflatten(-1, (num_heads, width)).split([head_dim, head_dim, head_dim, 1], dim=-1)
    # Autocast raises a softmax to float32; back to one dtype, as the operator gets without it.
    q, k = (apply_feature_map(z, feature_map, feature_map_eps).to(v.dtype) for z in (q, k))
    y, fast_weight = delta_rule(q, k, v, beta.squeeze(-1).sigmoid(), fast_weight, reset=reset, backend=backend)
    return y.flatten(-2), fast_weight
