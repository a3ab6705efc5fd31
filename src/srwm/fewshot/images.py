"""The images of a task, as it asks for them."""

from collections.abc import Callable
from pathlib import Path

from srwm.data import ImageSet, inverted, load_images
from srwm.data.load import Split

from .config import TaskConfig


def image_loader(task: TaskConfig, data: Path | None) -> Callable[[Split], ImageSet]:
    """A function from the name of a split to its images, of the size that the task asks for.

    Args:
        task: where the images come from and how they are wanted.
        data: the data folder; see `srwm.data.data_folder`.
    """

    def load(split: Split) -> ImageSet:
        images = load_images(task.source, split, folder=data, image_size=task.image_size, channels=task.channels)
        return inverted(images) if task.invert else images

    return load
