"""Max pool 3x3 with stride 2 on a GPU: the gradient is gathered by each pixel, so no two programs add to one number."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

_ELEMENTS = 2048
"""Numbers that one program holds."""


def forward(x: Tensor, bias: Tensor, *, keeps_relu: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The maxima plus the bias, its ReLU, and which pixel of its window won each: 3 times its row plus its column.

    Where it is not to be kept, the ReLU is not computed, and what stands there is the first again.
    """
    n, c, h, w = x.shape
    shape = (n, c, (h + 1) // 2, (w + 1) // 2)
    y = torch.empty(shape, device=x.device, dtype=x.dtype, memory_format=torch.channels_last)
    winner = torch.empty(shape, device=x.device, dtype=torch.int8, memory_format=torch.channels_last)
    relu = torch.empty_like(y) if keeps_relu else y
    channels = triton.next_power_of_2(c)
    block = max(_ELEMENTS // channels, 1)
    pixels = n * shape[2] * shape[3]
    _fwd_kernel[(triton.cdiv(pixels, block),)](x, bias, y, relu, winner, pixels, h, w, c, block, channels, keeps_relu)
    return y, relu, winner


def backward(dy: Tensor, winner: Tensor, size: torch.Size) -> Tensor:
    """The gradient of the input, of a given size."""
    n, c, h, w = size
    dx = torch.empty(size, device=dy.device, dtype=dy.dtype, memory_format=torch.channels_last)
    channels = triton.next_power_of_2(c)
    block = max(_ELEMENTS // channels, 1)
    pixels = n * h * w
    _bwd_kernel[(triton.cdiv(pixels, block),)](dy, winner, dx, pixels, h, w, c, block, channels)
    return dx


@triton.jit
@no_type_check
def _fwd_kernel(
    x,
    bias,
    y,
    relu,
    winner,
    pixels,
    h,
    w,
    c: tl.constexpr,
    block: tl.constexpr,
    channels: tl.constexpr,
    keeps_relu: tl.constexpr,
):
    h2, w2 = (h + 1) // 2, (w + 1) // 2
    pixel = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    channel = tl.arange(0, channels)
    column, row, image = pixel % w2, pixel // w2 % h2, pixel // w2 // h2
    is_here = (pixel < pixels)[:, None] & (channel < c)[None, :]
    best = tl.full((block, channels), float("-inf"), tl.float32)
    place = tl.zeros((block, channels), tl.int32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            top, left = 2 * row + i - 1, 2 * column + j - 1
            is_inside = (top >= 0) & (top < h) & (left >= 0) & (left < w)
            at = ((image * h + top) * w + left)[:, None] * c + channel[None, :]
            value = tl.load(x + at, is_here & is_inside[:, None], float("-inf")).to(tl.float32)
            # The first of equals wins, and NaN always does, as in PyTorch.
            wins = (value > best) | (value != value)
            place = tl.where(wins, 3 * i + j, place)
            best = tl.where(wins, value, best)
    best += tl.load(bias + channel, channel < c, 0.0).to(tl.float32)[None, :]
    at = pixel[:, None] * c + channel[None, :]
    tl.store(y + at, best.to(y.dtype.element_ty), is_here)
    if keeps_relu:
        tl.store(relu + at, tl.where(best < 0, 0.0, best).to(y.dtype.element_ty), is_here)
    tl.store(winner + at, place.to(tl.int8), is_here)


@triton.jit
@no_type_check
def _bwd_kernel(dy, winner, dx, pixels, h, w, c: tl.constexpr, block: tl.constexpr, channels: tl.constexpr):
    h2, w2 = (h + 1) // 2, (w + 1) // 2
    pixel = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    channel = tl.arange(0, channels)
    column, row, image = pixel % w, pixel // w % h, pixel // w // h
    is_here = (pixel < pixels)[:, None] & (channel < c)[None, :]
    gradient = tl.zeros((block, channels), tl.float32)
    # Window o covers rows 2 o - 1 to 2 o + 1: an even row lies in one, an odd one in two.
    for i in tl.static_range(2):
        for j in tl.static_range(2):
            top, left = (row + i) // 2, (column + j) // 2
            is_another = ((i == 0) | (row % 2 == 1)) & ((j == 0) | (column % 2 == 1))
            is_inside = is_another & (top < h2) & (left < w2)
            at = ((image * h2 + top) * w2 + left)[:, None] * c + channel[None, :]
            is_read = is_here & is_inside[:, None]
            own = 3 * (row - 2 * top + 1) + column - 2 * left + 1
            won = tl.load(winner + at, is_read, -1).to(tl.int32) == own[:, None]
            gradient += tl.where(won, tl.load(dy + at, is_read, 0.0).to(tl.float32), 0.0)
    at = pixel[:, None] * c + channel[None, :]
    tl.store(dx + at, gradient.to(dx.dtype.element_ty), is_here)
