"""Networks of one language side by side, and what the right answers are."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from srwm.errors import InputError, RunError
from srwm.languages import StateTracker, find_task
from srwm.nn import SequenceState, find_memory

from .matrix_steps import MatrixWatcher


class Tracker(MatrixWatcher):
    """One of the networks.

    Attributes:
        name: what the page calls it.
        title: what its memory is called, without an article.
        model: the network, in evaluation mode.
    """

    def __init__(self, model: StateTracker, name: str) -> None:
        super().__init__(model.sequence)
        self.name, self.model = name, model.eval()
        self.title = find_memory(model.config.model.memory).title.removeprefix("A ").removeprefix("An ")

    @torch.no_grad()
    def read(self, symbol: int, state: SequenceState | None) -> tuple[tuple[float, ...], SequenceState]:
        """Read the next symbol: the probabilities of the answers, and the new state.

        Raises:
            RunError: if they are no numbers any more.
        """
        scores, new = self.model(torch.tensor([[symbol]]), state)
        probabilities = scores[0, 0].softmax(dim=-1)
        if not bool(probabilities.isfinite().all()):
            raise RunError(f"the matrices of {self.name} have grown beyond all numbers; begin anew")
        return tuple(probabilities.tolist()), new


class Language(NamedTuple):
    """What is asked of the networks."""

    title: str
    """What is asked at each place."""
    symbols: tuple[str, ...]
    """What the symbols 0, 1, ... are called."""
    answers: tuple[str, ...]
    """What the answers are called."""
    transitions: tuple[tuple[int, ...], ...]
    """`transitions[answer][symbol]` is the next answer; 0 stands before the first symbol."""


class TrackingLearner:
    """The networks, and their language.

    Args:
        models: the networks and what the page calls each; one or more, all of one task.

    Attributes:
        trackers: the networks.
        language: what is asked of them.
        trained_length: length of the longest sequence that any of them was trained on.

    Raises:
        InputError: if a model is none of languages, their tasks differ, or the answers of the task do not follow from
            one place to the next.
    """

    def __init__(self, models: Sequence[tuple[object, str]]) -> None:
        for model, name in models:
            if not isinstance(model, StateTracker):
                raise InputError(f"{name} reads no symbols; expected a model of languages, such as parity-srwm")
        self.trackers = [Tracker(model, name) for model, name in models if isinstance(model, StateTracker)]
        configs = [tracker.model.config.task for tracker in self.trackers]
        tasks = sorted({config.name for config in configs})
        if len(tasks) != 1:
            raise InputError(f"the models that track a state have the tasks {', '.join(tasks)}; expected one task")
        task = find_task(configs[0])
        if task.transitions is None:
            raise InputError(
                f"the right answers of the task {task.name!r} do not follow from one place to the next, so that a page "
                "cannot know them; expected a task such as parity, sum-mod-3, cups-3 or s3"
            )
        answers = task.answers or tuple(map(str, range(task.num_classes)))
        self.language = Language(task.title, task.symbols, answers, task.transitions)
        self.trained_length = max(config.longest for config in configs)
