"""A state of one image: what a model keeps of the image before, beside the states of its layers."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class LastImage(NamedTuple):
    """What a model keeps of the image before."""

    features: Float[Tensor, "b f"]
    """Its features; zeros at the start of a stream."""

    def detach(self) -> "LastImage":
        """Return the same values, cut from the graph."""
        return LastImage(self.features.detach())

    def reset(self, is_first: Bool[Tensor, "b"]) -> "LastImage":
        """Return the state with the rows where `is_first` is true reset."""
        return LastImage(self.features.masked_fill(is_first[:, None], 0))

    def to(self, device: torch.device | str) -> "LastImage":
        """Return the state on another device."""
        return LastImage(self.features.to(device))
