"""The life of one page's stream: one network, and tasks without end that change without a word."""

import math
import time
from collections.abc import Callable

from srwm.errors import RunError
from srwm.live import Answer, LiveStream

from .bounds import Slots
from .kept import Kept
from .matrix_steps import MatrixStep
from .session import MAX_WAITING
from .stream_history import History, Lived, Shown
from .stream_learner import StreamLearner, learnt_norm
from .tasks import TASK_LENGTHS, StreamTask, draw_task, task_bytes

MAX_STEPS = 200
"""Images that a request may ask for."""
_MAX_SESSIONS = 32
_MEMORY_BYTES = 256 * 2**20
"""About how much all streams may take."""
_HISTORY_BYTES = 2**18
"""About how much the history of one takes."""


class StreamSession:
    """A stream and its history. Without a word from outside, step n is a function of the seed and n alone.

    Attributes:
        seed: what the tasks are drawn from.
        task_length: images from one change of the classes to the next.
        task: number of the present task, from 0.
        place: images of it that were shown.
        history: what is remembered.
        layers: what the last step did to the matrices.
        is_dead: whether the matrices have grown beyond all numbers, so that nothing can be answered any more.
        slots: for its requests, so that one page cannot take the places of all others.
    """

    def __init__(self, learner: StreamLearner, seed: int = 0, task_length: int = TASK_LENGTHS[1]) -> None:
        self.learner = learner
        self.task_length = task_length
        self.slots = Slots(MAX_WAITING, "requests of this page")
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Reset, with the tasks of a seed; how long they are stays."""
        self.seed, self.task, self.place = seed, 0, 0
        self.history = History()
        self.layers: tuple[MatrixStep, ...] = self.learner.start
        self.is_dead = False
        self._stream = LiveStream(self.learner.model)
        self._drawn: StreamTask | None = None

    @property
    def is_blank(self) -> bool:
        """Whether it has seen nothing yet."""
        return self._stream.step == 0

    @property
    def norm(self) -> float:
        """Norm of what has been learnt; that before the end for a stream that is dead."""
        return self.history.bins[-1].norm if self.history.bins else 0.0

    def live(self, count: int) -> None:
        """Show so many more images, each with the label of the one before; fewer if the matrices die of it."""
        for left in range(count, 0, -1):
            if self.is_dead:
                return
            if left > 1:
                self._step()
                continue
            # What the matrices look like is asked for after the last image only.
            with self.learner.watching() as layers:
                self._step()
            if not self.is_dead:
                self.layers = layers()

    def set_task_length(self, images: int) -> None:
        """Say how many images classes stay for, those of the present task too."""
        self.task_length = images

    def change(self) -> None:
        """Let other classes come with the next image."""
        if self.place:
            self._begin_next_task()

    def _begin_next_task(self) -> None:
        self.task, self.place, self._drawn = self.task + 1, 0, None

    def _step(self) -> None:
        if self.place >= self.task_length:
            self._begin_next_task()
        if self._drawn is None:
            self._drawn = draw_task(self.learner.model, self.seed, self.task)
        drawn, image, label = self._drawn, self._drawn.images[self.place], self._drawn.labels[self.place]
        try:
            answer = self._stream.ask(image, source=drawn.source)
        except RunError:
            self.is_dead = True
            return
        norm = learnt_norm(self._stream.state)
        if not math.isfinite(norm):
            self.is_dead = True
            return
        self._stream.tell(label)
        self.place += 1
        self.history.add(self._shown(answer, drawn), norm)

    def _shown(self, answer: Answer, drawn: StreamTask) -> Shown:
        labels, at = drawn.labels, self.place
        said = answer.probabilities.index(answer.probability)
        instance = labels[:at].count(labels[at - 1])
        lived = Lived(self.history.steps + 1, self.task, at, instance, labels[at - 1], said)
        # A copy: a view would keep all images of the task.
        return Shown(lived, answer.probabilities, drawn.images[at - 1].clone(), drawn.is_inverted)


class StreamSessions(Kept[StreamSession]):
    """A bounded number of streams.

    Args:
        learner: the model that lives them.
        clock: gives seconds; read when a session is begun or used.
    """

    def __init__(self, learner: StreamLearner, clock: Callable[[], float] = time.monotonic) -> None:
        each = 2 * learner.state_bytes() + task_bytes(learner.model) + _HISTORY_BYTES
        limit = max(1, min(_MAX_SESSIONS, _MEMORY_BYTES // each))
        super().__init__(lambda: StreamSession(learner), limit, clock)
