"""Biases on a GPU: images are rows of channels, one for each pixel; sums over pixels have a fixed order."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

_ELEMENTS = 4096
"""Numbers that one program holds at a time."""
_MOST_SUMS = 1024
"""Programs that add up; each goes through its share of the pixels, and their sums are added at the end."""


def bias_relu(x: Tensor, bias: Tensor) -> Tensor:
    """max(x + bias, 0), for channels-last images."""
    return _forward(x, x, bias, has_skip=False)


def add_bias(x: Tensor, skip: Tensor, bias: Tensor) -> Tensor:
    """X + skip + bias, for channels-last images."""
    return _forward(x, skip, bias, has_skip=True)


def add_bias_relu(x: Tensor, skip: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """X + skip + bias, and its ReLU, for channels-last images."""
    relu = torch.empty_like(x, memory_format=torch.channels_last)
    return _forward(x, skip, bias, has_skip=True, relu=relu), relu


def relu_gradient(dy: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient before a ReLU whose output was y, and its sum over the pixels, in float32."""
    dx = torch.empty_like(dy, memory_format=torch.channels_last)
    return dx, _sums(dy, y, dx, has_relu=True)


def join_gradients(dy: Tensor, drelu: Tensor, relu: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient of what was handed on both as it is and through a ReLU, and its sum over the pixels, in float32."""
    dx = torch.empty_like(dy, memory_format=torch.channels_last)
    return dx, _sums(drelu, relu, dx, has_relu=True, straight=dy)


def sum_over_pixels(dy: Tensor) -> Tensor:
    """The sum of each channel over all pixels, in float32."""
    return _sums(dy, dy, dy, has_relu=False)


def _forward(x: Tensor, skip: Tensor, bias: Tensor, *, has_skip: bool, relu: Tensor | None = None) -> Tensor:
    y = torch.empty_like(x, memory_format=torch.channels_last)
    pixels, c, channels, block = _sizes(x)
    grid, keeps_relu = (triton.cdiv(pixels, block),), relu is not None
    _fwd_kernel[grid](x, skip, bias, y, relu if keeps_relu else y, pixels, c, block, channels, has_skip, keeps_relu)
    return y


def _sums(dy: Tensor, y: Tensor, dx: Tensor, *, has_relu: bool, straight: Tensor | None = None) -> Tensor:
    pixels, c, channels, block = _sizes(dy)
    programs = min(triton.cdiv(pixels, block), _MOST_SUMS)
    sums = torch.empty(programs, c, device=dy.device)
    joins = straight is not None
    other = straight if joins else dy
    _bwd_kernel[(programs,)](dy, other, y, dx, sums, pixels, programs, c, block, channels, has_relu, joins)
    return sums.sum(0)


def _sizes(x: Tensor) -> tuple[int, int, int, int]:
    """Pixels, channels, the next power of two of these, and pixels that a program holds at a time."""
    n, c, h, w = x.shape
    channels = triton.next_power_of_2(c)
    return n * h * w, c, channels, max(_ELEMENTS // channels, 1)


@triton.jit
@no_type_check
def _fwd_kernel(
    x,
    skip,
    bias,
    y,
    relu,
    pixels,
    c: tl.constexpr,
    block: tl.constexpr,
    channels: tl.constexpr,
    has_skip: tl.constexpr,
    keeps_relu: tl.constexpr,
):
    pixel = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    channel = tl.arange(0, channels)
    at = pixel[:, None] * c + channel[None, :]
    is_here = (pixel < pixels)[:, None] & (channel < c)[None, :]
    value = tl.load(x + at, is_here, 0.0).to(tl.float32)
    value += tl.load(bias + channel, channel < c, 0.0).to(tl.float32)[None, :]
    if has_skip:
        value += tl.load(skip + at, is_here, 0.0).to(tl.float32)
    else:
        # NaN stays NaN, as in PyTorch.
        value = tl.where(value < 0, 0.0, value)
    tl.store(y + at, value.to(y.dtype.element_ty), is_here)
    if keeps_relu:
        tl.store(relu + at, tl.where(value < 0, 0.0, value).to(y.dtype.element_ty), is_here)


@triton.jit
@no_type_check
def _bwd_kernel(
    dy,
    straight,
    y,
    dx,
    sums,
    pixels,
    programs,
    c: tl.constexpr,
    block: tl.constexpr,
    channels: tl.constexpr,
    has_relu: tl.constexpr,
    joins: tl.constexpr,
):
    program = tl.program_id(0)
    channel = tl.arange(0, channels)
    total = tl.zeros((channels,), tl.float32)
    for first in range(program * block, pixels, programs * block):
        pixel = first + tl.arange(0, block).to(tl.int64)
        at = pixel[:, None] * c + channel[None, :]
        is_here = (pixel < pixels)[:, None] & (channel < c)[None, :]
        gradient = tl.load(dy + at, is_here, 0.0)
        if has_relu:
            gradient = tl.where(tl.load(y + at, is_here, 0.0) > 0, gradient, 0.0)
            if joins:
                other = tl.load(straight + at, is_here, 0.0)
                gradient = (gradient.to(tl.float32) + other.to(tl.float32)).to(dx.dtype.element_ty)
            tl.store(dx + at, gradient, is_here)
        total += tl.sum(gradient.to(tl.float32), axis=0)
    tl.store(sums + program * c + channel, total, channel < c)
