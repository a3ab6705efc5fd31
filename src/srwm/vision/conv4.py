"""Conv-4, the small convolutional network of few-shot learning."""

from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from .batch_norm import BatchNorm
from .instance_norm import InstanceNorm, instance_norm_pool_relu
from .norm_pool import norm_pool_relu

Norm = Literal["batch", "instance"]
"""What follows a convolution: batch norm, or instance norm, which has no running statistics."""


class Conv4(nn.Module):
    """Four times [convolution 3x3, batch norm, max pool 2, dropout, ReLU] (paper, appendix B.2).

    Args:
        in_channels: 1 for grey images, 3 for colour.
        image_size: height and width of the images, at least 16.
        channels: of each layer: 64 for the paper's Omniglot, 32 elsewhere.
        dropout: probability of dropping a feature after each pool.
        norm: "batch" (the paper), or "instance", which sees each image by itself: for networks that meet other data
            sets than those of their training.

    Attributes:
        feature_size: features of an image.

    Example:
        >>> Conv4(1, 28)(torch.rand(5, 1, 28, 28)).shape
        torch.Size([5, 64])
    """

    def __init__(
        self, in_channels: int, image_size: int, *, channels: int = 64, dropout: float = 0.0, norm: Norm = "batch"
    ) -> None:
        super().__init__()
        if image_size < 16:
            raise ValueError(
                f"image_size={image_size}; expected at least 16, because Conv-4 halves an image four times"
            )
        sizes = [in_channels, channels, channels, channels, channels]
        self.blocks = nn.ModuleList(_ConvBlock(*pair, dropout, norm) for pair in pairwise(sizes))
        self.feature_size = channels * (image_size // 16) ** 2
        # Pixels with all their channels lie together: cuDNN, oneDNN and our kernels are fastest so.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n features"]:
        """Turn images into features."""
        x = channels_last(images)
        for block in self.blocks:
            x = block(x)
        return x.flatten(1)


class _ConvBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.norm = BatchNorm(out_channels) if norm == "batch" else InstanceNorm(out_channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        # The norm takes the bias away again, so it is never added, and no pass over the gradient is spent on it.
        y = F.conv2d(x, self.conv.weight, padding=1)
        # The paper drops before the ReLU; since either order gives the same, the pool and the ReLU can be one.
        if isinstance(self.norm, InstanceNorm):
            pooled = instance_norm_pool_relu(y, self.norm)
        else:
            pooled = norm_pool_relu(y, self.norm, self.conv.bias)
        dropped: Tensor = self.dropout(pooled)
        return dropped


def channels_last(images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
    """Lay images out pixel by pixel, in a way that PyTorch recognises.

    With a single channel both layouts are the same memory and only the strides tell them apart; by default they say the
    wrong one, and the first convolution then gives its large output in the other layout.
    """
    _, c, h, w = images.shape
    if c == 1:
        return images.contiguous().as_strided(images.shape, (h * w, 1, w, 1))
    return images.contiguous(memory_format=torch.channels_last)
