"""What a run on languages is made of: the task, the network, the optimiser and the training."""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from srwm.nn import Memory
from srwm.runs.config import RecipeConfig, at_least, below_one, positive_or_none

FILE = "file:"
"""What the name of a task begins with that lies in a file."""

MOST_LENGTH = 1_000_000


@dataclass(frozen=True)
class CurriculumConfig:
    """A training that begins with short sequences, and goes on to longer ones as it gets them right.

    Every 64 steps the share of sequences of these steps that were right at every position is looked at.
    """

    first_longest: int = 2
    """Longest sequence at the beginning."""
    sequence_accuracy: float = 0.9
    """Share of right sequences from which on longer ones come."""
    growth: float = 0.1
    """By how much, as a share of the longest, but at least by one length that the task has."""

    def __post_init__(self) -> None:
        at_least(1, first_longest=self.first_longest)
        at_least(0, growth=self.growth)
        if not 0 < self.sequence_accuracy <= 1:
            raise ValueError(f"sequence_accuracy={self.sequence_accuracy}; expected more than 0, and 1 at most")


@dataclass(frozen=True)
class TaskConfig:
    """What is asked, and at which lengths."""

    name: str = "parity"
    """What is asked at each position: a name that `srwm.languages.TASKS` has, sum-mod-M, or file:PATH."""
    test_name: str | None = None
    """Another task to test with, such as a second file; none for the same."""
    num_symbols: int | None = None
    """Symbols of a task in a file; others know theirs."""
    num_classes: int | None = None
    """Answers of a task in a file; others know theirs."""
    shortest: int = 2
    """Shortest sequence of the training."""
    longest: int = 50
    """Longest sequence of the training."""
    same_length: bool = True
    """Whether all sequences of a training batch are equally long: no time is lost on filling up. Where a length has
    only one sequence (a^n b^n), lengths of their own make the batch richer."""
    curriculum: CurriculumConfig | None = None
    """How the longest length of the training grows from a short one; none for all lengths from the first step."""
    test_lengths: tuple[str, ...] = ("2-50", "51-100", "200", "500", "1000", "10000")
    """Lengths to test at, each a range as 51-100 or one length. Where the language has none, the longest one below."""

    def __post_init__(self) -> None:
        at_least(1, shortest=self.shortest)
        if not self.shortest <= self.longest <= MOST_LENGTH:
            raise ValueError(f"longest={self.longest}; expected {self.shortest} (shortest) to {MOST_LENGTH:,}")
        if not self.test_lengths:
            raise ValueError("test_lengths is empty; expected lengths such as 51-100 or 1000")
        for text in self.test_lengths:
            read_range(text)
        for name in ("num_symbols", "num_classes"):
            value = getattr(self, name)
            if value is None and self.name.startswith(FILE):
                raise ValueError(f"{name} is none; a task in a file must say it")
            if value is not None and not self.name.startswith(FILE):
                raise ValueError(f"{name}={value}; only a task in a file may say it")
            if value is not None:
                at_least(2, **{name: value})


@dataclass(frozen=True)
class NetworkConfig:
    """The network that reads the sequences."""

    memory: Memory = "srwm"
    """What follows the state."""
    hidden_size: int = 64
    """Width."""
    num_layers: int = 2
    """Layers, each a memory and a feed-forward sub-layer."""
    num_heads: int = 2
    """Heads of each memory; must divide hidden_size."""
    ff_size: int | None = 128
    """Inner width of the feed-forward sub-layers; none for 4 times hidden_size."""
    dropout: float = 0.0
    """Dropout."""
    memory_options: dict[str, Any] = field(default_factory=dict)
    """Further options of the memory: key_map, forget_gates, beta_init, feature_map, max_learning_rate, ..."""

    def __post_init__(self) -> None:
        at_least(1, hidden_size=self.hidden_size, num_layers=self.num_layers, num_heads=self.num_heads)
        below_one(dropout=self.dropout)


@dataclass(frozen=True)
class WarmupAdamConfig:
    """Adam with a linear warm-up, and a constant or a falling rate after it."""

    learning_rate: float = 1e-3
    """Learning rate after the warm-up."""
    warmup_steps: int = 50
    """Steps in which the rate grows to it."""
    decay_steps: int = 0
    """Steps at the end of the training in which the rate falls to zero, as half a cosine; 0 for none."""
    beta1: float = 0.9
    """Adam's first decay."""
    beta2: float = 0.999
    """Adam's second decay."""
    eps: float = 1e-8
    """Adam's epsilon."""
    clip_norm: float | None = 1.0
    """Largest norm of the gradient; none for no clipping."""

    def __post_init__(self) -> None:
        at_least(
            0,
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            decay_steps=self.decay_steps,
            eps=self.eps,
        )
        below_one(beta1=self.beta1, beta2=self.beta2)
        positive_or_none(clip_norm=self.clip_norm)

    def rates(self, total_steps: int) -> Callable[[int], float]:
        """The schedule of a training: from the number of a step, counted from 0, to its learning rate."""
        return functools.partial(self.rate, total_steps=total_steps)

    def rate(self, step: int, total_steps: int) -> float:
        """The learning rate of a step, counted from 0."""
        rate = self.learning_rate * min(1.0, (step + 1) / max(self.warmup_steps, 1))
        to_come = total_steps - step
        if to_come > self.decay_steps:
            return rate
        return rate * 0.5 * (1 - math.cos(math.pi * to_come / (self.decay_steps + 1)))


MAY_CHANGE = (
    "train.total_steps",
    "train.stop_at",
    "train.log_every",
    "train.checkpoint_every",
    "train.test_sequences",
)
"""What may differ when a run is resumed: how long it goes on and how often it looks, but not what it computes."""


@dataclass(frozen=True)
class LanguagesTrainConfig:
    """How long, how much at once, and how often to look."""

    batch_size: int = 64
    """Sequences of a step, over all processes."""
    total_steps: int = 500
    """Steps of the training; without a validation the last weights are what a run comes to, so that no length is
    chosen for."""
    state_noise: float = 0.0
    """Gaussian noise in the state while training, its standard deviation as a share of the root mean square of each
    part of the state: what was learnt then finds back to its place, at lengths far beyond the training's, too."""
    state_noise_every: int = 4
    """Steps of a sequence from one such noise to the next."""
    validation_lengths: tuple[str, ...] = ()
    """Lengths to validate at, as task.test_lengths: a run then comes to the weights with the most sequences right there
    (the mean over these lengths). Empty for no validation. The paper on formal languages chooses by 2-50 and 51-100,
    the lengths that it reports."""
    validate_every: int = 50
    """Steps between two validations."""
    validation_sequences: int = 200
    """Sequences to validate with at each of the lengths; others than those of the test."""
    stop_at: float | None = None
    """Share of sequences right in a validation at which the training ends; none to go on to the last step."""
    log_every: int = 25
    """Steps between two lines of metrics. Every batch is new: its accuracy is that on sequences never seen."""
    checkpoint_every: int = 500
    """Steps between two checkpoints."""
    test_sequences: int = 200
    """Sequences to test with at each of the lengths."""
    deterministic: bool = True
    """Whether training is bitwise reproducible on a GPU, too, at some cost in speed."""

    def __post_init__(self) -> None:
        names = ("batch_size", "total_steps", "log_every", "checkpoint_every", "test_sequences")
        at_least(1, **{name: getattr(self, name) for name in (*names, "validate_every", "validation_sequences")})
        at_least(1, state_noise_every=self.state_noise_every)
        at_least(0, state_noise=self.state_noise)
        for text in self.validation_lengths:
            read_range(text, "validation_lengths")
        if self.stop_at is not None and not 0 < self.stop_at <= 1:
            raise ValueError(f"stop_at={self.stop_at}; expected more than 0 and 1 at most, or none")
        if self.stop_at is not None and not self.validation_lengths:
            raise ValueError(f"stop_at={self.stop_at} without validation_lengths; expected lengths such as 2-50,51-100")


@dataclass(frozen=True)
class LanguagesConfig(RecipeConfig):
    """A recipe: everything that a run is made of."""

    task: TaskConfig = field(default_factory=TaskConfig)
    """What is asked, and at which lengths."""
    model: NetworkConfig = field(default_factory=NetworkConfig)
    """The network."""
    optimizer: WarmupAdamConfig = field(default_factory=WarmupAdamConfig)
    """Adam and its learning rate."""
    train: LanguagesTrainConfig = field(default_factory=LanguagesTrainConfig)
    """How long, how much at once, and how often to look."""


def read_range(text: str, option: str = "test_lengths") -> tuple[int, int]:
    """Read lengths such as "51-100" or "200".

    Raises:
        ValueError: if they are none.
    """
    found = re.fullmatch(r"([0-9]{1,7})(?:-([0-9]{1,7}))?", text)
    if found is not None:
        shortest, longest = int(found[1]), int(found[2] or found[1])
        if 1 <= shortest <= longest <= MOST_LENGTH:
            return shortest, longest
    raise ValueError(f"{text!r} in {option}; expected a length as 200 or a range as 51-100, up to {MOST_LENGTH:,}")
