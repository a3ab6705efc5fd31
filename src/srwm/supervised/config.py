"""What trainings on labelled images have in common: the network, the optimiser and the training."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from srwm.nn import Memory, known_memory
from srwm.runs.config import at_least, below_one, positive_or_none
from srwm.runs.loop import LoopOptions
from srwm.vision import DropoutVariant, Norm

LabelSlot = Literal["class_zero", "no_label"]
"""What stands in the place of a query's label: the one-hot of class 0 (the authors), or a token of its own."""


Order = Literal["alternating", "random", "fixed"]
"""Which source comes first: each in turn, step by step; a random order for each step; or always as listed."""

MOST_SOURCES = 32
"""Sources of a training, at the most: each draws from a stream of random numbers of its own."""


def check_sources(sources: Sequence[str], horizontal_flip: Sequence[str], channels: int) -> None:
    """Refuse sources that are none or too many, a flip of others, and channels that no image has."""
    if not 1 <= len(sources) <= MOST_SOURCES:
        raise ValueError(f"sources has {len(sources)} names; expected 1 to {MOST_SOURCES}")
    strange = [name for name in horizontal_flip if name not in sources]
    if strange:
        raise ValueError(f"horizontal_flip names {strange[0]!r}, which is none of the sources {', '.join(sources)}")
    if channels not in (1, 3):
        raise ValueError(f"channels={channels}; expected 1 (grey) or 3 (colours)")


@dataclass(frozen=True)
class ModelConfig:
    """The network."""

    encoder: Literal["conv4", "res12"] = "conv4"
    """What turns an image into features."""
    encoder_channels: int = 64
    """Channels of each layer of Conv-4, or features of Res-12 (256 or 512)."""
    encoder_dropout: float = 0.0
    """Dropout in the encoder."""
    encoder_norm: Norm = "batch"
    """What follows each convolution of Conv-4: batch norm (the paper), or instance norm, which sees each image by
    itself: for models that meet data sets they were not trained on."""
    dropout_variant: DropoutVariant = "base"
    """Where Res-12 drops."""
    feature_norm: bool = False
    """Whether features pass through a batch norm of their own. Without it (the paper) they are positive and much alike,
    which is why training stays on a plateau at chance level for long."""
    memory: Memory = "srwm"
    """What learns within an episode: a memory by its name, or a layer of your own as package.module:Class."""
    hidden_size: int = 256
    """Width of the sequence part."""
    num_layers: int = 2
    """Layers of the sequence part."""
    num_heads: int = 16
    """Heads of each memory; must divide hidden_size."""
    ff_size: int | None = 1024
    """Inner width of the feed-forward sub-layers; none for 4 times hidden_size."""
    dropout: float = 0.0
    """Dropout in the sequence part."""
    memory_options: dict[str, Any] = field(default_factory=dict)
    """Further options of the memory: input_activation, norm, beta_init, query_init_scale, feature_map, ..."""
    label_slot: LabelSlot = "class_zero"
    """What stands in the place of a query's label."""
    label_scale: float = 1.0
    """Size of the one-hot of a label beside the features: 1 in the paper; more makes labels heard sooner."""

    def __post_init__(self) -> None:
        sizes = ("hidden_size", "num_layers", "num_heads", "encoder_channels")
        at_least(1, **{name: getattr(self, name) for name in sizes})
        below_one(encoder_dropout=self.encoder_dropout, dropout=self.dropout)
        if self.encoder == "res12" and self.encoder_norm != "batch":
            raise ValueError(f"encoder_norm={self.encoder_norm!r} is for Conv-4; Res-12 has batch norm")
        memory = known_memory(self.memory)
        if memory is not None and memory.has_heads and self.hidden_size % self.num_heads:
            raise ValueError(f"hidden_size={self.hidden_size} is not a multiple of num_heads={self.num_heads}")

    @property
    def widest(self) -> int:
        """Width of the sequence part where it is widest."""
        return self.ff_size or 4 * self.hidden_size


@dataclass(frozen=True)
class OptimizerConfig:
    """Adam and its learning rate."""

    learning_rate: float = 1e-3
    """Learning rate, or its peak; "noam" has its own."""
    schedule: Literal["constant", "noam", "cosine"] = "constant"
    """How the rate goes on: constant; "noam", the authors' warm-up, hidden_size^-1/2 min(step^-1/2, step warmup^-3/2);
    or "cosine", a linear warm-up and then half a cosine down to zero at the last step."""
    warmup_steps: int = 5000
    """Steps of the warm-up; a constant rate has none."""
    beta1: float = 0.9
    """Adam's first decay."""
    beta2: float = 0.995
    """Adam's second decay."""
    eps: float = 1e-9
    """Adam's epsilon."""
    clip_norm: float | None = None
    """Largest norm of the gradient; none for no clipping."""

    def __post_init__(self) -> None:
        at_least(0, learning_rate=self.learning_rate, warmup_steps=self.warmup_steps, eps=self.eps)
        below_one(beta1=self.beta1, beta2=self.beta2)
        positive_or_none(clip_norm=self.clip_norm)
        if self.schedule == "noam" and self.warmup_steps < 1:
            raise ValueError(f"warmup_steps={self.warmup_steps}; the noam schedule wants at least 1")

    def rates(self, hidden_size: int, total_steps: int) -> Callable[[int], float]:
        """The schedule of a training: from the number of a step, counted from 0, to its learning rate."""
        return functools.partial(self.rate, hidden_size=hidden_size, total_steps=total_steps)

    def rate(self, step: int, *, hidden_size: int, total_steps: int) -> float:
        """The learning rate of a step, counted from 0.

        Example:
            >>> noam = OptimizerConfig(schedule="noam", warmup_steps=5000)
            >>> f"{noam.rate(4999, hidden_size=256, total_steps=600_000):.3g}"
            '0.000884'
        """
        number = step + 1
        if self.schedule == "noam":
            # Vaswani et al. (2017); the authors call it "warmup".
            return float(hidden_size**-0.5 * min(number**-0.5, number * self.warmup_steps**-1.5))
        if self.schedule == "cosine":
            if number <= self.warmup_steps:
                return self.learning_rate * number / self.warmup_steps
            progress = (number - self.warmup_steps) / max(total_steps - self.warmup_steps, 1)
            return self.learning_rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        return self.learning_rate


MAY_CHANGE = (
    "train.total_steps",
    "train.stop_at",
    "train.log_every",
    "train.checkpoint_every",
    "train.test_sets",
    "train.test_episodes",
)
"""What may differ when a run is resumed: how long it goes on and how often it looks, but not what it computes."""


@dataclass(frozen=True)
class TrainConfig:
    """How long, how much at once, and how often to look."""

    batch_size: int = 128
    """Episodes of a step, over all processes."""
    grad_accum_steps: int = 1
    """Parts that a process cuts its batch into, one after the other, to save memory."""
    total_steps: int = 300_000
    """Steps of the training."""
    precision: Literal["float32", "tf32", "bfloat16"] = "tf32"
    """Arithmetic on a GPU: full float32; tensor cores (tf32); or bfloat16 in the encoder and tf32 elsewhere."""
    deterministic: bool = True
    """Whether training is bitwise reproducible on a GPU, too, at some cost in speed."""
    log_every: int = 100
    """Steps between two lines of metrics."""
    validate_every: int = 1000
    """Steps between two validations."""
    validation_episodes: int = 1600
    """Episodes of a validation; always the same ones."""
    checkpoint_every: int = 10_000
    """Steps between two checkpoints; a better validation than ever makes one too."""
    stop_at: float | None = None
    """Stop once the validation accuracy reaches this; none to go on to the end."""
    test_sets: int = 5
    """Sets of test episodes at the end."""
    test_episodes: int = 16_000
    """Episodes of each test set."""

    def __post_init__(self) -> None:
        sizes = ("batch_size", "grad_accum_steps", "total_steps", "log_every", "validate_every", "validation_episodes")
        at_least(
            1, **{name: getattr(self, name) for name in (*sizes, "checkpoint_every", "test_sets", "test_episodes")}
        )
        if self.batch_size % self.grad_accum_steps:
            raise ValueError(
                f"batch_size={self.batch_size} is not a multiple of grad_accum_steps={self.grad_accum_steps}"
            )

    def loop_options(self, images_per_step: int) -> LoopOptions:
        """When the loop does what, for a training whose step takes so many images."""
        return LoopOptions(
            total_steps=self.total_steps,
            log_every=self.log_every,
            validate_every=self.validate_every,
            checkpoint_every=self.checkpoint_every,
            stop_at=self.stop_at,
            items_per_step=images_per_step,
            item="images",
        )
