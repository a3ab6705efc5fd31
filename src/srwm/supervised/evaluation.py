"""What the tests of all experiments on images have in common: features that are computed once, and parts of a test."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from srwm.runs.devices import at_once

from .network import ImageNetwork, evaluating, to_unit

__all__ = ["IMAGES_AT_ONCE", "chunks", "embed", "images_at_once"]

IMAGES_AT_ONCE = 2048
"""Images that the encoder gets at once, at the most."""


@torch.no_grad()
def embed(model: ImageNetwork, images: Tensor) -> Float[Tensor, "n f"]:
    """Turn images into features, once: outside of training they do not depend on what they are drawn for."""
    device = next(model.parameters()).device
    with evaluating(model):
        parts = images.split(images_at_once(model, device))
        return torch.cat([model.features(to_unit(part.to(device))) for part in parts])


def images_at_once(model: ImageNetwork, device: torch.device) -> int:
    """How many images the encoder gets at once."""
    _, height, width = model.image_shape
    return at_once(IMAGES_AT_ONCE, device, floats=model.options.encoder_channels * height * width)


def chunks(total: int, size: int) -> Iterator[int]:
    """The sizes of parts that are together `total`, all but the last of one size."""
    return (min(size, total - start) for start in range(0, total, size))
