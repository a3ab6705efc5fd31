"""All images of a stream's sources in one tensor, and what brings their pixels to one scale."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.data import ImageSet, check_enough, inverted, load_images
from srwm.data.load import Split
from srwm.supervised.bank import ImageBank, source_names

from .config import Normalise, StreamConfig

INVERTED = "+inverted"
"""What stands behind the name of a source whose images are wanted as negatives."""

_MEASURED_IMAGES = 1024
"""Mean and deviation are measured on about so many images, spread evenly over the set."""


class Statistics(NamedTuple):
    """Mean and standard deviation of the pixels of each channel, where 1 is white."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


_IMAGENET = Statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_CIFAR = Statistics((0.507, 0.487, 0.441), (0.267, 0.256, 0.276))
# They belong to black ink on white, but the authors' code applies them to white ink on black.
_OMNIGLOT = Statistics((0.922,) * 3, (0.084,) * 3)

AUTHORS = {
    "omniglot": _OMNIGLOT,
    "omniglot-original": _OMNIGLOT,
    "mini-imagenet": _IMAGENET,
    "tiny-imagenet-100": _IMAGENET,
    "fc100": _CIFAR,
    "cifar-fs": _CIFAR,
}
"""The statistics of the authors' code, by source; where there are none, they are measured."""


@dataclass(frozen=True, eq=False)
class Bank(ImageBank):
    """One split of all sources, ready for drawing streams; a source that is listed twice is one set."""

    segments: tuple[int, ...] = ()
    """The set of each source, in the order in which the sources are listed."""

    @classmethod
    def of_sets(cls, names: Sequence[str], sets: Sequence[ImageSet], segments: Sequence[int] | None = None) -> "Bank":
        """Put image sets together; see `ImageBank.of_sets`.

        Args:
            names: what each set is called.
            sets: the sets, all of one image shape.
            segments: the set of each segment of a stream; None for each set once.

        Raises:
            InputError: if the images differ in shape.
        """
        return replace(super().of_sets(names, sets), segments=tuple(range(len(sets)) if segments is None else segments))

    def set_of_image(self) -> Int[Tensor, "n"]:
        """The number of the set that each image belongs to."""
        counts = torch.tensor([len(one.images) for one in self.classes], device=self.images.device)
        numbers = torch.arange(len(self.classes), device=self.images.device)
        return numbers.repeat_interleave(counts, output_size=len(self.images))

    def check_enough(self, stream: StreamConfig) -> None:
        """Refuse sets that have too few classes or images for such streams."""
        for one in self.classes:
            # Drawing sets one image of each segment aside, which is not used here.
            check_enough(one, stream.ways, stream.per_class, 1)


def load_bank(stream: StreamConfig, split: Split, data: Path | None = None) -> Bank:
    """Load one split of every source of a stream, at one size and with one number of channels.

    Raises:
        InputError: if a source is unknown, not there, broken, or too small.
    """
    words = distinct_sources(stream)
    loaded: dict[str, ImageSet] = {}
    sets = []
    for word in words:
        plain = word.removesuffix(INVERTED)
        if plain not in loaded:
            loaded[plain] = load_images(
                plain, split, folder=data, image_size=stream.image_size, channels=stream.channels
            )
        one = loaded[plain]
        sets.append(one if word == plain else inverted(one))
    bank = Bank.of_sets(set_names(stream), sets, [words.index(word) for word in stream.sources])
    bank.check_enough(stream)
    return bank


def distinct_sources(stream: StreamConfig) -> list[str]:
    """The sources of a stream, each once."""
    return list(dict.fromkeys(stream.sources))


def set_names(stream: StreamConfig) -> tuple[str, ...]:
    """What the distinct sources are called in metrics and tables."""
    return source_names(distinct_sources(stream))


def statistics(stream: StreamConfig, training: Bank) -> tuple[Float[Tensor, "sets c"], Float[Tensor, "sets c"]]:
    """Mean and deviation of the pixels of training images, by which those of each set are brought to one scale."""
    counts = [len(one.images) for one in training.classes]
    sets = training.images.split(counts)
    if stream.normalise == "common":
        # Each source counts the same, however many images it has.
        images = torch.cat([_some(one, _MEASURED_IMAGES // len(sets)) for one in sets])
        mean, std = _measure(images)
        return mean.repeat(len(sets), 1), std.repeat(len(sets), 1)
    found = [
        _of_set(stream.normalise, word, images) for word, images in zip(distinct_sources(stream), sets, strict=True)
    ]
    return torch.stack([mean for mean, _ in found]), torch.stack([std for _, std in found])


def _of_set(normalise: Normalise, word: str, images: Tensor) -> tuple[Tensor, Tensor]:
    known = AUTHORS.get(word) if normalise == "authors" else None
    if known is None:
        return _measure(_some(images, _MEASURED_IMAGES))
    mean, std = (torch.tensor(part, device=images.device) for part in known)
    return (mean, std) if images.shape[1] == 3 else (mean.mean()[None], std.mean()[None])


def _some(images: Tensor, number: int) -> Tensor:
    """About so many of the images, spread evenly."""
    return images[:: max(1, len(images) // max(1, number))]


def _measure(images: Tensor) -> tuple[Tensor, Tensor]:
    pixels = images.double() / 255
    std = pixels.std(dim=(0, 2, 3), correction=0)
    # A channel that never changes, but for rounding, is only shifted.
    std = torch.where(std > 1e-6, std, 1.0)
    return pixels.mean(dim=(0, 2, 3)).float(), std.float()
