"""The residual network of IMPALA, "large": fifteen convolutions from a frame of a game to its features."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from .bias import add_bias, add_bias_relu, bias_relu
from .max_pool import max_pool_bias_relu


class Impala(nn.Module):
    """Stages of [convolution, max pool 3 stride 2, two residual blocks], then a linear layer (Espeholt et al., 2018).

    Args:
        in_channels: 3 for colour.
        frame_size: height and width of the frames.
        channels: of each stage; the paper's agents have 16, 32 and 32.
        feature_size: features of a frame.

    Attributes:
        feature_size: features of a frame.

    Example:
        >>> Impala()(torch.rand(5, 3, 64, 64)).shape
        torch.Size([5, 256])
    """

    def __init__(
        self,
        in_channels: int = 3,
        frame_size: int = 64,
        *,
        channels: Sequence[int] = (16, 32, 32),
        feature_size: int = 256,
    ) -> None:
        super().__init__()
        if not channels or min(channels) < 1:
            raise ValueError(f"channels={tuple(channels)}; expected at least one stage, and a channel in each")
        self.stages = nn.ModuleList(_Stage(*pair) for pair in pairwise((in_channels, *channels)))
        for _ in channels:
            frame_size = (frame_size + 1) // 2
        self.linear = nn.Linear(channels[-1] * frame_size**2, feature_size)
        self.feature_size = feature_size
        # Pixels with all their channels lie together: so do the frames of the games, and so the kernels are fastest.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, frames: Float[Tensor, "n c h w"]) -> Float[Tensor, "n features"]:
        """Turn frames, from 0 to 1, into features."""
        x = frames.contiguous(memory_format=torch.channels_last)
        for stage in self.stages:
            x = stage(x)
        features: Tensor = self.linear(x.relu().flatten(1)).relu()
        return features


class _Stage(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.blocks = nn.ModuleList([_ImpalaBlock(out_channels), _ImpalaBlock(out_channels)])

    def forward(self, x: Tensor) -> Tensor:
        # A bias can be added after the pool as well as before, where it has four times as many pixels.
        assert self.conv.bias is not None
        weight = self.conv.weight
        if x.is_cuda:
            x, weight = _by_eights(x), _by_eights(weight)
        # What a block adds to and what it begins with, its ReLU, are written in one pass.
        x, relu = max_pool_bias_relu(F.conv2d(x, weight, padding=1), self.conv.bias)
        first, last = cast(list[_ImpalaBlock], list(self.blocks))
        x, relu = add_bias_relu(first(relu), x, first.last_bias)
        return add_bias(last(relu), x, last.last_bias)


class _ImpalaBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, relu: Tensor) -> Tensor:
        """What the block adds to its input, but for the last bias, from the ReLU of the input."""
        # The biases go with what comes after: a pass less over all pixels.
        assert self.conv1.bias is not None
        inner = bias_relu(F.conv2d(relu, self.conv1.weight, padding=1), self.conv1.bias)
        return F.conv2d(inner, self.conv2.weight, padding=1)

    @property
    def last_bias(self) -> Tensor:
        """The bias that is still to be added."""
        assert self.conv2.bias is not None
        return self.conv2.bias


def _by_eights(x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c8 h w"]:
    """Add channels of zeros up to a multiple of eight: tensor cores take no fewer, and a frame has three."""
    return F.pad(x, (0, 0, 0, 0, 0, -x.shape[1] % 8)) if x.shape[1] % 8 else x
