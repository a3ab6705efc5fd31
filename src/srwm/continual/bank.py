"""All images of a recipe's sources in one tensor."""

from pathlib import Path

from srwm.data import check_enough, load_images
from srwm.data.load import Split
from srwm.errors import InputError
from srwm.supervised.bank import ImageBank, source_names

from .config import TasksConfig


class TaskBank(ImageBank):
    """One split of every source, ready for drawing tasks."""

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
