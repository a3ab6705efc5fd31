"""Batch norm, 2x2 max pool and ReLU in one: what follows each convolution of a Conv-4."""

import functools
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from .batch_norm import BatchNorm, across_processes, merge_statistics

_ELEMENTS = 4096
"""Numbers that one program of a kernel holds."""
_MAX_PARTS = 512
"""Programs that share the work of a sum over all images."""


def norm_pool_relu(
    x: Float[Tensor, "n c h w"], norm: BatchNorm, conv_bias: Float[Tensor, "c"] | None = None
) -> Float[Tensor, "n c h2 w2"]:
    """Normalise, take the maximum of each 2x2 window, and rectify.

    On a GPU in training, fused kernels do it without writing anything of the size of `x` but its gradient; elsewhere it
    is PyTorch's own operators.

    Args:
        x: images; channels-last in memory is the fast layout. An odd last row or column is not pooled.
        norm: the batch norm; in training its running statistics are moved.
        conv_bias: a bias that belongs to `x` but was not added: batch norm takes every constant away again, so only
            the running mean has to know of it.

    Returns:
        The pooled images.
    """
    if norm.training and x.is_cuda and x.dtype != torch.float64:
        return _fused(x, norm, conv_bias)
    return torch.nn.functional.max_pool2d(norm(x, conv_bias), 2).relu()


def _fused(x: Tensor, norm: BatchNorm, conv_bias: Tensor | None) -> Tensor:
    bias = None if conv_bias is None else conv_bias.detach()
    y: Tensor = _NormPoolRelu.apply(x, norm.weight, norm.bias, norm, bias)  # type: ignore[no-untyped-call]
    return y


class _NormPoolRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, norm: BatchNorm, conv_bias: Tensor | None) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        n, c, h, w = x.shape
        mean, square = _statistics(x, norm, conv_bias)
        total = n * h * w
        if across_processes():
            mean, square, total = merge_statistics(mean, square, total)
            norm.move_running_statistics(mean, square, total, conv_bias)
        y, winner = (
            torch.empty((n, c, h // 2, w // 2), device=x.device, dtype=x.dtype, memory_format=torch.channels_last)
            for _ in range(2)
        )
        block, channels = _tile(c)
        windows = n * (h // 2) * (w // 2)
        _kernels().pool_fwd_kernel[(_cdiv(windows, block),)](
            x, mean, square, weight, bias, y, winner, windows, h, w, float(total), norm.eps, c, block, channels
        )
        ctx.save_for_backward(x, winner, mean, square, weight, bias)
        ctx.total, ctx.eps = total, norm.eps
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, winner, mean, square, weight, bias = ctx.saved_tensors
        n, c, h, w = x.shape
        dy = dy.contiguous(memory_format=torch.channels_last)
        block, channels = _tile(c)
        kernels = _kernels()
        common = (float(ctx.total), ctx.eps, c, block, channels)

        windows = n * (h // 2) * (w // 2)
        parts, tiles = _shares(windows, block)
        sums, products = torch.empty((2, parts, c), device=x.device, dtype=torch.float32)
        kernels.pool_sums_kernel[(parts,)](
            dy, winner, mean, square, weight, bias, sums, products, windows, tiles, *common
        )
        dbias, dweight = both = torch.empty((2, c), device=x.device, dtype=torch.float32)
        kernels.add_up_kernel[(_cdiv(c, 16),)](sums, products, dbias, dweight, parts, c, 64, 16)
        own_dbias, own_dweight = dbias, dweight
        if across_processes():
            own_dbias, own_dweight = both.clone()
            torch.distributed.all_reduce(both)

        dx = torch.empty_like(x, memory_format=torch.channels_last)
        windows = n * ((h + 1) // 2) * ((w + 1) // 2)
        # Four pixels a window are held at once, so a program takes fewer windows.
        block = max(block // 4, 1)
        kernels.pool_bwd_kernel[(_cdiv(windows, block),)](
            x, dy, mean, square, weight, bias, dbias, dweight, dx, windows, h, w, *common[:3], block, channels
        )
        return dx, own_dweight, own_dbias, None, None


def _statistics(x: Tensor, norm: BatchNorm, conv_bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The mean of each channel, and the sum of squared distances from it, of the images of this process."""
    n, c, h, w = x.shape
    rows = n * h * w
    block, channels = _tile(c)
    parts, tiles = _shares(rows, block)
    means, squares = torch.empty((2, parts, c), device=x.device, dtype=torch.float32)
    _kernels().statistics_kernel[(parts,)](x, means, squares, rows, tiles, c, block, channels)
    mean, square = torch.empty((2, c), device=x.device, dtype=torch.float32)
    _kernels().merge_kernel[(_cdiv(c, 16),)](
        means, squares, mean, square, norm.running_mean, norm.running_var, conv_bias, norm.momentum, rows, parts,
        tiles * block, not across_processes(), conv_bias is not None, c, 64, 16,
    )  # fmt: skip
    return mean, square


@functools.cache
def _kernels() -> ModuleType:
    """Triton takes a second to import, so only where it is used."""
    return import_module(f"{__package__}._norm_pool_kernels")


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
