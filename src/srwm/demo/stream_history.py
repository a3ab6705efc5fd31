"""What is remembered of a life: all of it in a few numbers, the last part image by image. Its size has a bound."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import UInt8
from torch import Tensor

RECENT = 300
"""Images whose answers are remembered one by one."""
SHOWN = 12
"""Images that are remembered as a whole."""
RUNNING = 30
"""Images of the running accuracy."""
INSTANCES = 10
"""The accuracy on the first, second, ... image of a class since the change is told up to here; later ones together."""
MAX_BINS = 200
"""Of the curve over the whole life; when there are more, two at a time become one."""


class Lived(NamedTuple):
    """One image that was answered."""

    step: int
    """Its number in the stream, from 1."""
    task: int
    """The number of its task, from 0."""
    place: int
    """Its number in the task, from 1."""
    instance: int
    """The how manieth image of its class since the change it is, from 1."""
    label: int
    """The truth."""
    answer: int
    """What the model said."""

    @property
    def is_right(self) -> bool:
        """Whether the answer is the truth."""
        return self.answer == self.label


class Shown(NamedTuple):
    """One image with all that is shown of it."""

    lived: Lived
    """The answer."""
    probabilities: tuple[float, ...]
    """Of each class."""
    image: UInt8[Tensor, "c h w"]
    """As the model saw it."""
    is_inverted: bool
    """Whether it is dark on bright."""


@dataclass
class Bin:
    """A stretch of a life."""

    images: int = 0
    """How many."""
    right: int = 0
    """Correct answers."""
    norm: float = 0.0
    """Norm of what had been learnt at its end."""


class History:
    """The life of one stream.

    Attributes:
        recent: the last answers.
        shown: the last images.
        steps: images lived for.
        right: correct answers among them.
        instances: correct answers and images, for the first, second, ... image of a class since the change.
        bins: the whole life in stretches of `bin_width` images; the last may be shorter.
        bin_width: how many images a stretch has.
    """

    def __init__(self) -> None:
        self.recent: deque[Lived] = deque(maxlen=RECENT)
        self.shown: deque[Shown] = deque(maxlen=SHOWN)
        self.steps = self.right = 0
        self.instances = [[0, 0] for _ in range(INSTANCES + 1)]
        self.bins: list[Bin] = []
        self.bin_width = 1

    def add(self, shown: Shown, norm: float) -> None:
        """Remember one more image, and the norm of what had been learnt after it."""
        lived = shown.lived
        self.recent.append(lived)
        self.shown.append(shown)
        self.steps += 1
        self.right += lived.is_right
        counts = self.instances[min(lived.instance, INSTANCES + 1) - 1]
        counts[0] += lived.is_right
        counts[1] += 1
        if not self.bins or self.bins[-1].images == self.bin_width:
            if len(self.bins) == MAX_BINS:
                self._halve()
            self.bins.append(Bin())
        last = self.bins[-1]
        last.images += 1
        last.right += lived.is_right
        last.norm = norm

    @property
    def running(self) -> tuple[int, int]:
        """Correct answers among the last `RUNNING` images, and how many these are."""
        last = list(self.recent)[-RUNNING:]
        return sum(each.is_right for each in last), len(last)

    def _halve(self) -> None:
        pairs = zip(self.bins[::2], self.bins[1::2], strict=True)
        self.bins = [Bin(a.images + b.images, a.right + b.right, b.norm) for a, b in pairs]
        self.bin_width *= 2
