"""Random changes to training images: as another hand might draw them, and as alphabets that nobody has drawn.

A change of its own for each image makes the images of a class differ more. One change for all images of an episode
makes new classes: rotated by any angle, stretched, sheared, mirrored. (A change for each class of an episode would give
its images away: they could be told by their angle.)
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from srwm.data.random import random_bits, stream_key


def episode_keys(
    episodes: int, *, seed: int, rng_stream: int, step: Int[Tensor, ""], first: int = 0
) -> Int[Tensor, "{episodes}"]:
    """A key for each episode, by its place in the whole batch: each process, and each part, draws what one would.

    Args:
        episodes: how many.
        seed: seed of the run.
        rng_stream: stream of random numbers.
        step: number of the step, on the device.
        first: place of the first episode in the whole batch, of which these may be a part.
    """
    places = first + torch.arange(episodes, device=step.device)
    return stream_key(seed, rng_stream, step) + places * 0x5851F42D4C957F2D


def jitter(
    images: Float[Tensor, "b n c h w"], keys: Int[Tensor, "b"], *, each_image: float, each_episode: float
) -> Float[Tensor, "b n c h w"]:
    """Rotate, scale, shear and shift images (random affine maps).

    Args:
        images: images; what comes in from outside is zero.
        keys: of the episodes, from `episode_keys`.
        each_image: strength of the changes of each image by itself: 1 is up to 15 degrees, 15% and a tenth of half the
            image; others in proportion.
        each_episode: strength of the changes of all images of an episode together: 1 is up to 45 degrees, 30%, and
            mirrored half of the time.

    Returns:
        The changed images; a pure function of the arguments.
    """
    of_episode = _matrices(keys, 1, each_episode, rotation=math.radians(45), stretch=0.3, shift=0.0)
    if each_episode:
        mirrored = random_bits(keys + 1, (1, 1, 1)) % 2 * 2 - 1
        of_episode = torch.cat([of_episode[..., :1] * mirrored, of_episode[..., 1:]], dim=-1)
    of_image = _matrices(keys + 2, images.shape[1], each_image, rotation=math.radians(15), stretch=0.15, shift=0.1)
    # First the change of the image, then that of its episode.
    rotation = of_episode[..., :2] @ of_image[..., :2]
    shift = of_episode[..., :2] @ of_image[..., 2:] + of_episode[..., 2:]
    flat = images.flatten(0, 1)
    grid = F.affine_grid(torch.cat([rotation, shift], dim=-1).flatten(0, 1), list(flat.shape), align_corners=False)
    changed: Tensor = F.grid_sample(flat, grid, align_corners=False)
    return changed.reshape(images.shape)


def horizontal_flip(images: Float[Tensor, "b n c h w"], keys: Int[Tensor, "b"]) -> Float[Tensor, "b n c h w"]:
    """Mirror each image by itself, left to right, half of the time; see `jitter`."""
    is_mirrored = random_bits(keys + 3, (images.shape[1], 1, 1, 1)) % 2 == 1
    return torch.where(is_mirrored, images.flip(-1), images)


def _matrices(
    key: Int[Tensor, "b"], n: int, strength: float, *, rotation: float, stretch: float, shift: float
) -> Float[Tensor, "b n 2 3"]:
    """Draw affine maps: a rotation, two scalings, a shear and a shift, each at most as given times the strength."""
    uniform = random_bits(key, (n, 6)).float() / 2**31 - 1
    angle, scale_x, scale_y, shear, shift_x, shift_y = (strength * uniform).unbind(dim=-1)
    cos, sin = (rotation * angle).cos(), (rotation * angle).sin()
    scale_x, scale_y, shear = 1 + stretch * scale_x, 1 + stretch * scale_y, stretch * shear
    top = torch.stack([scale_x * cos, scale_y * (shear * cos - sin), shift * shift_x], dim=-1)
    bottom = torch.stack([scale_x * sin, scale_y * (shear * sin + cos), shift * shift_y], dim=-1)
    return torch.stack([top, bottom], dim=-2)


def thicken(images: Float[Tensor, "b n c h w"], keys: Int[Tensor, "b"], most: float) -> Float[Tensor, "b n c h w"]:
    """Make bright strokes on dark thicker, each image by itself.

    Args:
        images: images.
        keys: of the episodes, from `episode_keys`.
        most: up to so many pixels on either side of a stroke, drawn evenly from 0.

    Returns:
        The changed images; a pure function of the arguments.
    """
    width = most * (random_bits(keys + 4, (images.shape[1], 1, 1, 1)).float() / 2**32)
    # Between two whole widths lies a mixture of both.
    thin, changed = images, images
    for whole in range(math.ceil(most)):
        thick = F.max_pool2d(thin.flatten(0, 1), 3, stride=1, padding=1).reshape(images.shape)
        changed = torch.where(width > whole, torch.lerp(thin, thick, (width - whole).clamp(max=1.0)), changed)
        thin = thick
    return changed
