"""Random changes to training images: small turns, scalings, shears and shifts, as another hand might draw them."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from srwm.data.random import random_bits, stream_key

_TURN, _SCALE, _SHEAR, _SHIFT = math.radians(15), 0.15, 0.15, 0.1
"""Largest changes at strength 1: radians, factors, and shares of half the image."""


def jitter(
    images: Float[Tensor, "b n c h w"], strength: float, seed: int, stream: int, step: Int[Tensor, ""]
) -> Float[Tensor, "b n c h w"]:
    """Turn, scale, shear and shift each image by itself.

    Args:
        images: images; what comes in from outside is zero.
        strength: 1 is up to 15 degrees, 15% and a twentieth of the image; others in proportion.
        seed: seed of the run.
        stream: stream of random numbers.
        step: number of the step, on the device.

    Returns:
        The changed images; a pure function of the arguments.
    """
    b, n = images.shape[:2]
    uniform = random_bits(stream_key(seed, stream, step), (b * n, 6)).to(images.dtype) / 2**31 - 1
    turn, scale_x, scale_y, shear, shift_x, shift_y = (strength * uniform).unbind(dim=-1)
    cos, sin = (_TURN * turn).cos(), (_TURN * turn).sin()
    scale_x, scale_y = 1 + _SCALE * scale_x, 1 + _SCALE * scale_y
    shear = _SHEAR * shear
    top = torch.stack([scale_x * cos, scale_y * (shear * cos - sin), _SHIFT * shift_x], dim=-1)
    bottom = torch.stack([scale_x * sin, scale_y * (shear * sin + cos), _SHIFT * shift_y], dim=-1)
    flat = images.flatten(0, 1)
    grid = F.affine_grid(torch.stack([top, bottom], dim=1), list(flat.shape), align_corners=False)
    changed: Tensor = F.grid_sample(flat, grid, align_corners=False)
    return changed.reshape(images.shape)
