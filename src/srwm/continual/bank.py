"""All images of a recipe's sources in one tensor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from srwm.data import ImageSet, check_enough, load_images
from srwm.data.load import Split
from srwm.errors import InputError

from .config import TasksConfig


@dataclass(frozen=True, eq=False)
class TaskBank:
    """One split of every source, ready for drawing tasks."""

    names: tuple[str, ...]
    """What each source is called."""
    images: UInt8[Tensor, "n c h w"]
    """All images, source by source."""
    classes: tuple[ImageSet, ...]
    """The classes of each source: image sets without pixels, whose places count from the start of the source."""
    firsts: tuple[int, ...]
    """Where the images of each source begin."""

    @classmethod
    def of_sets(cls, names: Sequence[str], sets: Sequence[ImageSet]) -> "TaskBank":
        """Put image sets together.

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

    def to(self, device: torch.device | str) -> "TaskBank":
        """Give the same bank on a device."""
        return replace(self, images=self.images.to(device), classes=tuple(one.to(device) for one in self.classes))

    def check_enough(self, tasks: TasksConfig) -> None:
        """Refuse sources that have too few classes or images for such sequences."""
        ways = tasks.ways * tasks.rounds
        for one in self.classes:
            check_enough(one, ways, tasks.shots, tasks.queries * ways)


def load_bank(tasks: TasksConfig, split: Split, data: Path | None = None) -> TaskBank:
    """Load one split of every source, at one size and with one number of channels.

    Raises:
        InputError: if a source is unknown, not there, broken, or too small.
    """
    words = list(dict.fromkeys(tasks.sources))
    loaded = {
        word: load_images(word, split, folder=data, image_size=tasks.image_size, channels=tasks.channels)
        for word in words
    }
    if len(words) != len(tasks.sources):
        raise InputError(f"sources names one of {', '.join(words)} twice; expected different sources")
    bank = TaskBank.of_sets(source_names(tasks.sources), [loaded[word] for word in tasks.sources])
    bank.check_enough(tasks)
    return bank


def source_names(sources: Sequence[str]) -> tuple[str, ...]:
    """What sources are called in metrics and tables: the word itself, or the name of a folder."""
    names: list[str] = []
    for word in sources:
        name = Path(word.partition(":")[2]).name if ":" in word else word
        # Two folders may have the same name.
        names.append(name if name not in names else f"{name}-{len(names)}")
    return tuple(names)
