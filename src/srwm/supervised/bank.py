"""All images of several sources in one tensor, ready for drawing what a training is made of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from srwm.data import ImageSet
from srwm.data.random import random_bits
from srwm.errors import InputError

from .config import Order

__all__ = ["ImageBank", "source_names", "source_order"]

Bank = TypeVar("Bank", bound="ImageBank")


@dataclass(frozen=True, eq=False)
class ImageBank:
    """One split of several sources."""

    names: tuple[str, ...]
    """What each set of images is called."""
    images: UInt8[Tensor, "n c h w"]
    """All images, set by set."""
    classes: tuple[ImageSet, ...]
    """The classes of each set: image sets without pixels, whose places count from the start of the set."""
    firsts: tuple[int, ...]
    """Where the images of each set begin."""

    @classmethod
    def of_sets(cls: type[Bank], names: Sequence[str], sets: Sequence[ImageSet]) -> Bank:
        """Put image sets of one image shape together.

        Raises:
            InputError: if the images differ in shape.
        """
        shapes = {tuple(one.images.shape[1:]) for one in sets}
        if len(shapes) > 1:
            raise InputError(f"the images of {', '.join(names)} differ in shape: {sorted(shapes)}; expected one shape")
        counts = torch.tensor([0, *(len(one.images) for one in sets)]).cumsum(0).tolist()
        return cls(
            names=tuple(names),
            images=torch.cat([one.images for one in sets]) if len(sets) > 1 else sets[0].images,
            classes=tuple(replace(one, images=one.images.new_empty(len(one.images), 0, 0, 0)) for one in sets),
            firsts=tuple(counts[:-1]),
        )

    def to(self: Bank, device: torch.device | str) -> Bank:
        """Give the same bank on a device."""
        return replace(self, images=self.images.to(device), classes=tuple(one.to(device) for one in self.classes))


def source_names(words: Sequence[str]) -> tuple[str, ...]:
    """What sources are called in metrics and tables: the word itself, or the name of a folder."""
    names: list[str] = []
    for word in words:
        name = Path(word.partition(":")[2]).name if ":" in word else word
        # Two folders may have the same name.
        names.append(name if name not in names else f"{name}-{len(names)}")
    return tuple(names)


def source_order(
    order: Order, key: Int[Tensor, "*s"], steps: Int[Tensor, "*s"], sources: int
) -> Int[Tensor, "*s {sources}"]:
    """The numbers of the sources at each step, first to last."""
    listed = torch.arange(sources, device=steps.device)
    if order == "fixed":
        return listed.expand(*steps.shape, sources)
    if order == "alternating":
        return (steps[..., None] + listed) % sources
    return random_bits(key, (sources,)).argsort(dim=-1, stable=True)
