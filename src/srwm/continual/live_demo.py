"""A made-up input for live streams of tasks: the examples of one task after the other, and questions about all so far.

The model is told the label of each example, and nothing of tasks; only the report is told what a question is about.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from srwm.errors import InputError
from srwm.live.requests import Request

from .bank import load_bank
from .config import MOST_TASKS
from .model import ContinualModel
from .sequences import TaskSequences, draw_sequences

_RNG_STREAM = 0x11FE
"""Keeps these random numbers apart from those of training and testing."""


class TaskDemo:
    """Task after task of classes that the model was not trained on, drawn as in its tests.

    After the examples of a task come questions about it and about every earlier task of its sequence, then a report.
    With class-incremental labels, a sequence ends where the labels do, and the next one begins with a reset; with
    domain-incremental ones, it goes on for ever in one state. What request n is, is a function of the seed and n alone.

    Args:
        sources: where the images come from, as in `TasksConfig.sources`; their test classes are shown.
        model: says what a task is, and the shape of the images.
        tasks: tasks of a sequence; None for as many as in the model's training.
        seed: of the drawing.
        start: requests that were made before.
        data: the data folder.

    Raises:
        InputError: if a source is unknown, not there, or too small, or there are more tasks than the model has labels.
    """

    def __init__(
        self,
        sources: Sequence[str],
        model: ContinualModel,
        *,
        tasks: int | None = None,
        seed: int = 0,
        start: int = 0,
        data: Path | None = None,
    ) -> None:
        trained = model.config.tasks
        count = trained.tasks if tasks is None else tasks
        if not 1 <= count <= MOST_TASKS:
            raise InputError(f"{count} tasks of a sequence; expected 1 to {MOST_TASKS}")
        shown = replace(trained, sources=tuple(sources), horizontal_flip=(), tasks=count, classes=None)
        if shown.labels_needed > model.ways:
            raise InputError(
                f"{count} tasks need {shown.labels_needed} labels, and the model tells {model.ways} apart; expected at "
                f"most {model.ways // trained.ways} tasks"
            )
        self._tasks, self._bank = shown, load_bank(shown, "test", data)
        self._seed = seed
        self.name = name_of(sources, count, seed)
        self.position: int | str = start
        self._made = start

    def __iter__(self) -> Iterator[Request]:
        while True:
            sequence, first = divmod(self._made, self._length)
            for request in self._sequence(sequence)[first:]:
                self.position = self._made = self._made + 1
                yield request

    @property
    def _length(self) -> int:
        """Requests of a sequence."""
        tasks = self._tasks
        questions = tasks.ways * tasks.queries * tasks.tasks * (tasks.tasks + 1) // 2
        return self._begins_anew + tasks.tasks * (tasks.ways * tasks.shots + 1) + questions

    @property
    def _begins_anew(self) -> bool:
        return self._tasks.labels == "class_incremental"

    def _sequence(self, number: int) -> list[Request]:
        drawn: TaskSequences = draw_sequences(
            self._bank,
            torch.tensor(number),
            self._tasks,
            batch_size=1,
            order="fixed",
            seed=self._seed,
            rng_stream=_RNG_STREAM,
        )
        support, labels, query, wanted, source = (field[0].tolist() for field in drawn)
        where: dict[str, int | str] = {"sequence": number + 1}
        requests = [Request(where, reset=True)] if self._begins_anew else []
        names = [f"{place + 1} {self._bank.names[which]}" for place, which in enumerate(source)]
        for task in range(self._tasks.tasks):
            for image, label in zip(support[task], labels[task], strict=True):
                requests.append(Request(where, image=self._bank.images[image], label=label))
            for earlier in range(task + 1):
                for image, label in zip(query[earlier], wanted[earlier], strict=True):
                    pixels = self._bank.images[image]
                    requests.append(Request(where, image=pixels, label=label, learn=False, task=names[earlier]))
            requests.append(Request(where, report=True))
        return requests


def name_of(sources: Sequence[str], tasks: int, seed: int) -> str:
    """What such an input is called in a saved state."""
    return f"tasks:{','.join(sources)}:{tasks}:{seed}"
