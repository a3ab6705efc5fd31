"""Frames of bytes to images of numbers on a GPU, in one pass."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

_ELEMENTS = 4096
"""Numbers that one program holds."""


def to_images(frames: Tensor, dtype: torch.dtype, channels: int) -> Tensor:
    """Divide bytes [n, h, w, c] by 255, and add channels of zeros: channels-last images [n, channels, h, w]."""
    n, h, w, c = frames.shape
    images = torch.empty(n, channels, h, w, device=frames.device, dtype=dtype, memory_format=torch.channels_last)
    pixels, size = n * h * w, triton.next_power_of_2(channels)
    block = max(_ELEMENTS // size, 1)
    _kernel[(triton.cdiv(pixels, block),)](frames, images, pixels, c, channels, block, size)
    return images


@triton.jit
@no_type_check
def _kernel(frames, images, pixels, c: tl.constexpr, channels: tl.constexpr, block: tl.constexpr, size: tl.constexpr):
    pixel = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    channel = tl.arange(0, size)
    is_here = (pixel < pixels)[:, None]
    at = pixel[:, None] * c + channel[None, :]
    byte = tl.load(frames + at, is_here & (channel < c)[None, :], 0)
    # As PyTorch divides by a number on a GPU: equal bits.
    value = byte.to(tl.float32) * (1.0 / 255.0)
    at = pixel[:, None] * channels + channel[None, :]
    tl.store(images + at, value.to(images.dtype.element_ty), is_here & (channel < channels)[None, :])
