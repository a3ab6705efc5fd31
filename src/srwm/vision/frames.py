"""Frames of a game, as they lie in memory, to what an encoder reads."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from srwm.ops.kernels import in_memory


def to_images(frames: UInt8[Tensor, "n h w c"], dtype: torch.dtype) -> Float[Tensor, "n channels h w"]:
    """Turn bytes into numbers from 0 to 1, channels-last in memory as the bytes are.

    On a GPU our kernel does it in one pass, and adds channels of zeros up to a multiple of eight: tensor cores take no
    fewer.

    Args:
        frames: pixel by pixel, as the games draw them.
        dtype: of the numbers.
    """
    if frames.is_cuda and dtype in (torch.float32, torch.bfloat16, torch.float16):
        return fused_to_images(frames, dtype)
    # In this layout no pixel moves in memory.
    return frames.permute(0, 3, 1, 2).to(dtype) / 255


def fused_to_images(frames: Tensor, dtype: torch.dtype) -> Tensor:
    """`to_images` by the kernel, with channels of zeros."""
    from . import _frames_triton as kernels  # Triton takes a second to import

    channels = frames.shape[-1]
    images: Tensor = kernels.to_images(in_memory(frames), dtype, channels + -channels % 8)
    return images
