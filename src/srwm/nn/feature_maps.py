"""phi: the activations of keys, queries and inputs: positive with sum one, or of unit length with their signs."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from srwm.ops.checks import state_dtype
from srwm.ops.self_referential.reference import map_key

InputActivation = Literal["none", "softmax"]
"""On the input of a head. Paper: "none" in supervised learning, "softmax" in reinforcement learning."""

FeatureMap = Literal["softmax", "elu_sum", "l2"]
"""On keys and queries. Paper: "e.g. softmax"; the authors' DeltaNet code: "elu_sum"; the gated DeltaNet: "l2"."""


def activate_input(x: Float[Tensor, "*axes d"], activation: InputActivation) -> Float[Tensor, "*axes d"]:
    """Apply phi to the input of each head."""
    return x.softmax(dim=-1) if activation == "softmax" else x


def apply_feature_map(x: Float[Tensor, "*axes d"], feature_map: FeatureMap, eps: float) -> Float[Tensor, "*axes d"]:
    """Apply phi to keys or queries; `eps` is added to the sum that "elu_sum" divides by."""
    if feature_map == "softmax":
        return x.softmax(dim=-1)
    if feature_map == "l2":
        # Squares of half precision would overflow, or be lost.
        return map_key(x.to(state_dtype(x)), "l2").to(x.dtype)
    positive = F.elu(x) + 1
    return positive / (positive.sum(dim=-1, keepdim=True) + eps)
