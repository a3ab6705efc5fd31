"""What one page has let its networks read, symbol by symbol, and what they answered."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from srwm.errors import InputError
from srwm.nn import SequenceState

from .bounds import Slots
from .kept import Kept
from .matrix_steps import MatrixStep
from .session import MAX_WAITING
from .tracking_learner import TrackingLearner

MAX_SYMBOLS = 200
"""Symbols that a request may bring."""
SHOWN = 16
"""The last symbols, which can still be replaced by others."""
MAX_BINS = 100
"""Of the curve over all places; when there are more, two at a time become one."""
_MAX_SESSIONS = 32
_MEMORY_BYTES = 256 * 2**20
"""About how much all sessions may take."""
_HISTORY_BYTES = 2**18
"""About how much the history of one takes."""


class Read(NamedTuple):
    """One symbol that was read."""

    place: int
    """The how manieth symbol it is, from 1."""
    symbol: int
    truth: int
    """The right answer."""
    probabilities: tuple[tuple[float, ...], ...]
    """Of the answers, as each network has them."""

    @property
    def answers(self) -> tuple[int, ...]:
        """What each network says."""
        return tuple(each.index(max(each)) for each in self.probabilities)


class Bins(NamedTuple):
    """How often each network was right, stretch by stretch: its size has a bound."""

    width: int
    """Places of a stretch."""
    stretches: tuple[tuple[int, ...], ...]
    """Of each, how many places of it came, and how many of them each network had right; the last may not be full."""

    def add(self, right: Sequence[bool]) -> "Bins":
        """Add a place."""
        width, stretches = self
        if not stretches or stretches[-1][0] == width:
            if len(stretches) == MAX_BINS:
                pairs = zip(stretches[::2], stretches[1::2], strict=True)
                stretches, width = tuple(_sum(*pair) for pair in pairs), 2 * width
            stretches = (*stretches, (0,) * (1 + len(right)))
        return Bins(width, (*stretches[:-1], _sum(stretches[-1], (1, *map(int, right)))))


class Moment(NamedTuple):
    """The networks after some symbols. It never changes, so one can go back to it."""

    states: tuple[SequenceState | None, ...]
    truth: int
    """The right answer now."""
    right: tuple[int, ...]
    """How many answers of each network were right."""
    first_errors: tuple[int | None, ...]
    """The place of the first wrong answer of each; None if there was none."""
    bins: Bins


class TrackingSession:
    """A sequence and the networks that read it: a pure function of its symbols.

    Attributes:
        steps: symbols so far.
        shown: the last of them.
        moment: the networks now.
        layers: what the last symbol did to the matrices of each network.
        slots: for its requests, so that one page cannot take the places of all others.
    """

    def __init__(self, learner: TrackingLearner) -> None:
        self.learner = learner
        self.slots = Slots(MAX_WAITING, "requests of this page")
        self.reset()

    def reset(self) -> None:
        """Reset."""
        number = len(self.learner.trackers)
        self.steps = 0
        self.shown: deque[Read] = deque(maxlen=SHOWN)
        self.moment = Moment((None,) * number, 0, (0,) * number, (None,) * number, Bins(1, ()))
        self.layers: tuple[tuple[MatrixStep, ...], ...] = tuple(each.start for each in self.learner.trackers)
        # The moments before each of the symbols that are shown.
        self._before: deque[Moment] = deque(maxlen=SHOWN)

    @property
    def is_blank(self) -> bool:
        """Whether nothing was read yet."""
        return self.steps == 0

    def read(self, symbols: Sequence[int]) -> None:
        """Read one or more symbols.

        Raises:
            RunError: if a network gives no numbers any more; what was read until then stays.
        """
        *others, last = symbols
        for symbol in others:
            self._read(symbol)
        # What the matrices look like is asked for after the last one only.
        with ExitStack() as stack:
            watched = [stack.enter_context(tracker.watching()) for tracker in self.learner.trackers]
            self._read(last)
            self.layers = tuple(layers() for layers in watched)

    def replace(self, place: int, symbol: int) -> None:
        """Put another symbol at one of the places that are shown, and read again what came after it.

        Raises:
            InputError: if the place is not shown.
        """
        first = self.steps - len(self.shown) + 1
        if not first <= place <= self.steps:
            known = f"{first} to {self.steps}" if self.steps else "none yet"
            raise InputError(f"place {place} cannot be changed; expected one that is shown: {known}")
        after = [each.symbol for each in self.shown][place - first + 1 :]
        self.moment = self._before[place - first]
        for _ in range(place, self.steps + 1):
            self.shown.pop()
            self._before.pop()
        self.steps = place - 1
        self.read([symbol, *after])

    def _read(self, symbol: int) -> None:
        before, trackers = self.moment, self.learner.trackers
        truth = self.learner.language.transitions[before.truth][symbol]
        pairs = zip(trackers, before.states, strict=True)
        probabilities, states = zip(*(tracker.read(symbol, state) for tracker, state in pairs), strict=True)
        self.steps += 1
        shown = Read(self.steps, symbol, truth, probabilities)
        right = [answer == truth for answer in shown.answers]
        self._before.append(before)
        self.shown.append(shown)
        self.moment = Moment(
            states,
            truth,
            tuple(map(sum, zip(before.right, right, strict=True))),
            tuple(
                self.steps if first is None and not is_right else first
                for first, is_right in zip(before.first_errors, right, strict=True)
            ),
            before.bins.add(right),
        )


class TrackingSessions(Kept[TrackingSession]):
    """A bounded number of sessions.

    Args:
        learner: the networks.
        clock: gives seconds; read when a session is begun or used.
    """

    def __init__(self, learner: TrackingLearner, clock: Callable[[], float] = time.monotonic) -> None:
        # Each state is kept for every symbol that is shown.
        each = (SHOWN + 2) * sum(tracker.state_bytes() for tracker in learner.trackers) + _HISTORY_BYTES
        limit = max(1, min(_MAX_SESSIONS, _MEMORY_BYTES // each))
        super().__init__(lambda: TrackingSession(learner), limit, clock)


def _sum(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(sum, zip(one, other, strict=True)))
