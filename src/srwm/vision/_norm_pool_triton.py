"""Launches the kernels of `_norm_pool_kernels.py`: batch norm, pool and ReLU on a GPU."""

import torch
from torch import Tensor

from . import _norm_pool_kernels as kernels

_ELEMENTS = 4096
"""Numbers that one program of a kernel holds."""
_MAX_PARTS = 512
"""Programs that share the work of a sum over all images."""


def statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of each channel, and the sum of squared distances from it."""
    n, c, h, w = x.shape
    rows = n * h * w
    block, channels = _tile(c)
    parts, tiles = _shares(rows, block)
    means, squares = torch.empty((2, parts, c), device=x.device, dtype=torch.float32)
    kernels.statistics_kernel[(parts,)](x, means, squares, rows, tiles, c, block, channels)
    mean, square = torch.empty((2, c), device=x.device, dtype=torch.float32)
    kernels.merge_kernel[(_cdiv(c, 16),)](means, squares, mean, square, rows, parts, tiles * block, c, 64, 16)
    return mean, square


def forward(
    x: Tensor, mean: Tensor, square: Tensor, weight: Tensor, bias: Tensor, total: int, eps: float
) -> tuple[Tensor, Tensor]:
    """The pooled images, and the input that won each window."""
    n, c, h, w = x.shape
    shape, layout = (n, c, h // 2, w // 2), torch.channels_last
    y, winner = (torch.empty(shape, device=x.device, dtype=x.dtype, memory_format=layout) for _ in range(2))
    block, channels = _tile(c)
    windows = n * (h // 2) * (w // 2)
    kernels.pool_fwd_kernel[(_cdiv(windows, block),)](
        x, mean, square, weight, bias, y, winner, windows, h, w, float(total), eps, c, block, channels
    )
    return y, winner


def sums(
    dy: Tensor, winner: Tensor, mean: Tensor, square: Tensor, weight: Tensor, bias: Tensor, total: int, eps: float
) -> Tensor:
    """The sums over all windows of the gradient, and of the gradient times the normalised input [2, c]."""
    n, c, h2, w2 = dy.shape
    block, channels = _tile(c)
    windows = n * h2 * w2
    parts, tiles = _shares(windows, block)
    shares, products = torch.empty((2, parts, c), device=dy.device, dtype=torch.float32)
    kernels.pool_sums_kernel[(parts,)](
        dy, winner, mean, square, weight, bias, shares, products, windows, tiles, float(total), eps, c, block, channels
    )
    dbias, dweight = both = torch.empty((2, c), device=dy.device, dtype=torch.float32)
    kernels.add_up_kernel[(_cdiv(c, 16),)](shares, products, dbias, dweight, parts, c, 64, 16)
    return both


def backward(
    x: Tensor,
    dy: Tensor,
    mean: Tensor,
    square: Tensor,
    weight: Tensor,
    bias: Tensor,
    both: Tensor,
    total: int,
    eps: float,
) -> Tensor:
    """The gradient of the input."""
    n, c, h, w = x.shape
    dx = torch.empty_like(x, memory_format=torch.channels_last)
    block, channels = _tile(c)
    # Four pixels a window are held at once, so a program takes fewer windows.
    block = max(block // 4, 1)
    windows = n * ((h + 1) // 2) * ((w + 1) // 2)
    dbias, dweight = both
    kernels.pool_bwd_kernel[(_cdiv(windows, block),)](
        x, dy, mean, square, weight, bias, dbias, dweight, dx, windows, h, w, float(total), eps, c, block, channels
    )
    return dx


def _tile(c: int) -> tuple[int, int]:
    """Rows and channels of the tile of one program."""
    channels = 1 << (c - 1).bit_length()
    return max(_ELEMENTS // channels, 1), channels


def _shares(rows: int, block: int) -> tuple[int, int]:
    """How many programs share `rows`, and how many tiles each takes."""
    tiles = _cdiv(rows, block * _MAX_PARTS)
    return _cdiv(rows, block * tiles), tiles


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)
