"""The images of a task, as it asks for them."""

from collections.abc import Callable
from pathlib import Path

from srwm.data import ImageSet, inverted, load_images
from srwm.data.load import Split

from .config import FewShotTaskConfig


def image_loader(task: FewShotTaskConfig, data: Path | None) -> Callable[[Split], ImageSet]:
    """A function from the name of a split to its images, of the size that the task asks for."""

    def load(split: Split) -> ImageSet:
        images = load_images(task.source, split, folder=data, image_size=task.image_size, channels=task.channels)
        return inverted(images) if task.invert else images

    return load
