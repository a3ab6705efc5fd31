"""Images of many classes in one tensor: one split of one source."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from srwm.errors import InputError


@dataclass(frozen=True, eq=False)
class ImageSet:
    """One split of one source, ready for drawing episodes.

    Example:
        >>> images = torch.zeros(5, 1, 28, 28, dtype=torch.uint8)
        >>> cats_and_dogs = ImageSet.of_counts("pets/train", images, [3, 2], ["cat", "dog"])
        >>> cats_and_dogs.starts
        tensor([0, 3])
    """

    name: str
    """Source and split: `omniglot/train`."""
    images: UInt8[Tensor, "n c h w"]
    """All images; those of a class lie one after the other."""
    starts: Int64[Tensor, "classes"]
    """Where the images of each class begin."""
    counts: Int64[Tensor, "classes"]
    """How many images each class has."""
    class_names: tuple[str, ...]
    """What each class is called."""

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            came = f"{self.images.dtype} {list(self.images.shape)}"
            raise InputError(f"the images of {self.name} are {came}; expected torch.uint8 [n, c, h, w]")
        if not len(self.starts) == len(self.counts) == len(self.class_names) > 0:
            raise InputError(
                f"{self.name} has {len(self.starts)} starts, {len(self.counts)} counts and {len(self.class_names)} "
                "class names; expected one of each for every class, and at least one class"
            )
        if int(self.counts.min()) < 1:
            empty = self.class_names[int(self.counts.argmin())]
            raise InputError(f"class {empty!r} of {self.name} has no image")
        if not torch.equal(self.starts, self.counts.cumsum(0) - self.counts):
            raise InputError(f"the classes of {self.name} do not lie one after the other in its images")
        if int(self.counts.sum()) != len(self.images):
            raise InputError(
                f"{self.name} has {len(self.images)} images, but its counts add up to {int(self.counts.sum())}"
            )

    @classmethod
    def of_counts(
        cls, name: str, images: UInt8[Tensor, "n c h w"], counts: list[int], class_names: list[str]
    ) -> "ImageSet":
        """Build a set whose classes lie in `images` one after the other.

        Args:
            name: source and split.
            images: all images, class by class.
            counts: how many images each class has.
            class_names: what each class is called.
        """
        sizes = torch.tensor(counts, dtype=torch.int64)
        return cls(name, images, sizes.cumsum(0) - sizes, sizes, tuple(class_names))

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @functools.cached_property
    def smallest_class(self) -> tuple[str, int]:
        """Name and number of images of the class with the fewest; looked up once, because a GPU would be waited for."""
        index = int(self.counts.argmin())
        return self.class_names[index], int(self.counts[index])

    def to(self, device: torch.device | str) -> "ImageSet":
        """Give the same set with its tensors on `device`."""
        return replace(
            self, images=self.images.to(device), starts=self.starts.to(device), counts=self.counts.to(device)
        )


def joined(sets: Sequence[ImageSet]) -> ImageSet:
    """The classes of several sets, one set after the other; each class is named with its set.

    Raises:
        InputError: if the images differ in shape.
    """
    shapes = {tuple(one.images.shape[1:]) for one in sets}
    name = ",".join(one.name for one in sets)
    if len(shapes) > 1:
        raise InputError(
            f"the images of {name} differ in shape: {sorted(shapes)}; expected one shape, channels and size"
        )
    names = [f"{one.name}/{each}" for one in sets for each in one.class_names]
    counts = torch.cat([one.counts for one in sets]).tolist()
    return ImageSet.of_counts(name, torch.cat([one.images for one in sets]), counts, names)


def inverted(images: ImageSet) -> ImageSet:
    """The negatives of images: dark ink on light paper becomes bright ink on dark."""
    return dataclasses.replace(images, name=f"{images.name}+inverted", images=255 - images.images)
