"""The images of a task, as it asks for them."""

from collections.abc import Callable
from pathlib import Path

from srwm.data import ImageSet, inverted, load_images
from srwm.data.image_set import joined
from srwm.data.load import Split
from srwm.data.sources import FOLDER_PREFIX, SOURCES

from .config import FewShotTaskConfig


def image_loader(task: FewShotTaskConfig, data: Path | None) -> Callable[[Split], ImageSet]:
    """A function from the name of a split to its images, of the size that the task asks for."""

    def load(split: Split) -> ImageSet:
        sets = [
            load_images(word, split, folder=data, image_size=task.image_size, channels=task.channels)
            for word in source_words(task.source)
        ]
        images = sets[0] if len(sets) == 1 else joined(sets)
        return inverted(images) if task.invert else images

    return load


def source_words(source: str) -> list[str]:
    """The sources that a task names, with commas between them; a comma in the path of a folder is left alone."""
    words = source.split(",")
    return words if all(word in SOURCES or word.startswith(FOLDER_PREFIX) for word in words) else [source]
