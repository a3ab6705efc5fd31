"""Launches the kernels of `_instance_norm_kernels.py`: instance norm, pool and ReLU on a GPU."""

import torch
from torch import Tensor

from . import _instance_norm_kernels as kernels

_ELEMENTS = 4096
"""Windows times channels that one program holds, with four pixels each."""


def forward(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The pooled images."""
    n, c, h, w = x.shape
    y = torch.empty((n, c, h // 2, w // 2), device=x.device, dtype=x.dtype, memory_format=torch.channels_last)
    block, channels = _tile(c, h, w)
    kernels.instance_norm_fwd_kernel[(n, -(-c // channels))](
        x, weight, bias, y, eps, c, h, w, block, channels, num_warps=_warps(block * channels)
    )
    return y


def backward(x: Tensor, dy: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of the input, the weight and the bias."""
    n, c, h, w = x.shape
    dx = torch.empty_like(x, memory_format=torch.channels_last)
    # What each image adds to the gradients of weight and bias; their sum has a fixed order.
    shares = torch.empty((2, n, c), device=x.device, dtype=torch.float32)
    block, channels = _tile(c, h, w)
    kernels.instance_norm_bwd_kernel[(n, -(-c // channels))](
        x, dy, weight, bias, dx, shares[0], shares[1], eps, c, h, w, block, channels,
        num_warps=_warps(block * channels),
    )  # fmt: skip
    dweight, dbias = shares.sum(dim=1)
    return dx, dweight, dbias


def _tile(c: int, h: int, w: int) -> tuple[int, int]:
    """Windows of an image, and channels, that one program takes; both are powers of two."""
    windows = 1 << (((h + 1) // 2) * ((w + 1) // 2) - 1).bit_length()
    return windows, min(1 << (c - 1).bit_length(), max(_ELEMENTS // windows, 8))


def _warps(elements: int) -> int:
    return min(8, max(1, elements // 512))
