"""phi: the activations that make keys, queries and inputs positive with sum one."""

from typing import Literal

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

InputActivation = Literal["none", "softmax"]
"""On the input of a head. Paper: "none" in supervised learning, "softmax" in reinforcement learning."""

FeatureMap = Literal["softmax", "elu_sum"]
"""On keys and queries. Paper: "e.g. softmax"; the authors' DeltaNet code: "elu_sum"."""


def activate_input(x: Float[Tensor, "*axes d"], activation: InputActivation) -> Float[Tensor, "*axes d"]:
    """Apply phi to the input of each head."""
    return x.softmax(dim=-1) if activation == "softmax" else x


def apply_feature_map(x: Float[Tensor, "*axes d"], feature_map: FeatureMap, eps: float) -> Float[Tensor, "*axes d"]:
    """Apply phi to keys or queries; `eps` is added to the sum that "elu_sum" divides by."""
    if feature_map == "softmax":
        return x.softmax(dim=-1)
    positive = F.elu(x) + 1
    return positive / (positive.sum(dim=-1, keepdim=True) + eps)
