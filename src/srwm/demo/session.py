"""What one page has taught its network: the examples, the moments after each of them, and the names of the classes."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from srwm.errors import InputError

from .bounds import Slots
from .kept import Kept
from .learner import DrawingAnswer, DrawingLearner, Moment

MAX_EXAMPLES = 60
"""Examples of a session."""
MAX_TASKS = 50
"""Tasks of a session."""
MAX_WAITING = 8
"""Requests of a session that are computed or wait for it; a page sends one or two at a time."""
_MAX_SESSIONS = 32
_MEMORY_BYTES = 256 * 2**20
"""About how much all moments of all sessions may take."""


@dataclass(frozen=True, eq=False)
class Example:
    """One labelled drawing."""

    number: int
    """By which it is called; no other example of the session ever had it."""
    task: int
    """The task that it belongs to."""
    label: int
    """Its class within the task."""
    image: UInt8[ndarray, "c h w"]
    features: Float[Tensor, "f"]


class Session:
    """The examples of one page, in the order in which they were taught, and what came of them.

    Attributes:
        examples: what was taught and not forgotten.
        moments: the network before the first example, and after each; `moments[n]` is a pure function of the first n
            examples.
        tasks: names of the classes of each task; the last is the present one.
        slots: for its requests, so that one page cannot take the places of all others.
    """

    def __init__(self, learner: DrawingLearner) -> None:
        self.learner = learner
        self.slots = Slots(MAX_WAITING, "requests of this page")
        self.reset()

    def reset(self) -> None:
        """Reset."""
        self.examples: list[Example] = []
        self.moments: list[Moment] = [self.learner.start]
        self.tasks: list[list[str]] = [class_names(0, self.learner.model.ways)]
        self._next_number = 1

    @property
    def is_blank(self) -> bool:
        """Whether it is as when it began."""
        return not self.examples and self.tasks == [class_names(0, self.learner.model.ways)]

    def teach(self, label: int, image: UInt8[ndarray, "c h w"]) -> None:
        """Learn one more example of a class of the present task.

        Raises:
            InputError: if there are too many examples.
            RunError: if the network cannot take it.
        """
        if len(self.examples) >= MAX_EXAMPLES:
            raise InputError(f"there are {MAX_EXAMPLES} examples, as many as fit; forget one, or reset")
        example = Example(self._next_number, len(self.tasks) - 1, label, image, self.learner.features(image))
        self.moments.append(self.learner.step(example.features, label, self.moments[-1]))
        self.examples.append(example)
        self._next_number += 1

    def forget(self, number: int) -> None:
        """Take one example away, and learn again from those after it, as if it had never been.

        Raises:
            InputError: if there is no such example.
            RunError: if the network cannot take the others without it.
        """
        places = [place for place, example in enumerate(self.examples) if example.number == number]
        if not places:
            raise InputError(f"there is no example {number}")
        examples = self.examples[: places[0]] + self.examples[places[0] + 1 :]
        moments = self.moments[: places[0] + 1]
        for example in examples[places[0] :]:
            moments.append(self.learner.step(example.features, example.label, moments[-1]))
        self.examples, self.moments = examples, moments

    def switch(self) -> None:
        """Begin another task, with other classes; the network goes on as it is.

        Raises:
            InputError: if there are too many tasks.
        """
        if len(self.tasks) >= MAX_TASKS:
            raise InputError(f"there are {MAX_TASKS} tasks, as many as fit; reset to begin anew")
        self.tasks.append(class_names(len(self.tasks), self.learner.model.ways))

    def rename(self, label: int, name: str) -> None:
        """Give a class of the present task another name."""
        self.tasks[-1][label] = name

    def look(self, image: UInt8[ndarray, "c h w"], time: int, label: int | None) -> tuple[DrawingAnswer, Moment]:
        """Answer a drawing at a moment, and say what the network would become if the drawing stayed; nothing is kept.

        Args:
            image: the drawing.
            time: examples that the network has seen.
            label: the class that the drawing is meant to show; None if that is the question.

        Raises:
            InputError: if there is no such moment.
            RunError: if the network cannot take the drawing.
        """
        moment = self.moment(time)
        features = self.learner.features(image)
        return self.learner.answer(features, moment), self.learner.step(features, label, moment)

    def moment(self, time: int) -> Moment:
        """Give the network as it was after so many examples.

        Raises:
            InputError: if there are fewer.
        """
        if not 0 <= time < len(self.moments):
            raise InputError(f"time is {time}; expected 0 to {len(self.examples)}, the number of examples")
        return self.moments[time]


class Sessions(Kept[Session]):
    """A bounded number of sessions.

    Args:
        learner: whom they teach.
        clock: gives seconds; read when a session is begun or used.
    """

    def __init__(self, learner: DrawingLearner, clock: Callable[[], float] = time.monotonic) -> None:
        largest = max(1, learner.moment_bytes()) * (MAX_EXAMPLES + 1)
        super().__init__(lambda: Session(learner), max(1, min(_MAX_SESSIONS, _MEMORY_BYTES // largest)), clock)


def class_names(task: int, ways: int) -> list[str]:
    """The names that classes have at first: A, B, C, ... through all tasks, and AA, AB, ... after Z."""
    return [_letters(number) for number in range(task * ways, (task + 1) * ways)]


def _letters(number: int) -> str:
    more, last = divmod(number, 26)
    return (_letters(more - 1) if more else "") + chr(ord("A") + last)
