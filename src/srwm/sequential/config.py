"""What a run on streams is made of: the stream, the model, the optimiser and the training."""

import math
from dataclasses import dataclass, field
from typing import Literal

from srwm.runs.config import RecipeConfig, at_least
from srwm.supervised.config import ModelConfig, OptimizerConfig, Order, TrainConfig, check_sources

Normalise = Literal["authors", "own", "common"]
"""How pixels are brought to one scale; see `srwm.sequential.bank`."""


@dataclass(frozen=True)
class StreamConfig:
    """What a stream is: one segment of each source, one after the other, labels one step late."""

    sources: tuple[str, ...] = ("omniglot", "mini-imagenet")
    """Where the images of each segment come from: names that `srwm data list` shows, or folder:PATH; with "+inverted"
    behind it, as negatives. One source gives delayed labels without a change of data set."""
    ways: int = 5
    """Classes of a segment; the labels 0 to ways - 1 are used again in each."""
    per_class: int = 15
    """Images of each class in a segment."""
    max_trim: int = 60
    """In training, 0 to this many images are left out at the end of each segment, drawn again for each batch and
    segment. (From 0 as in the authors' code; the paper says 1 to 60.)"""
    order: Order = "alternating"
    """Which source comes first in training: alternating (the paper), random (the authors' code), or fixed."""
    feed_previous_features: bool = False
    """Whether the features of the image before stand beside its label. The paper feeds the label alone: the network
    must first learn to remember an image for one step, and until it does, it only counts labels."""
    prototypical_loss: float = 0.0
    """Weight of a second loss in training, which asks the features alone to tell the images of a segment apart by their
    distance from the mean of each class; the encoder learns sooner what is worth remembering. None in the paper."""
    horizontal_flip: tuple[str, ...] = ()
    """Those of the sources whose images are mirrored in training, left to right, each half of the time: a mirrored cat
    is a cat, but a mirrored letter is another one."""
    augment: float = 0.0
    """Random affine maps (rotation, scaling, shear, shift) of each training image; 0 (the paper) is none, 1 is
    strong. What comes in from outside is black."""
    image_size: int = 84
    """Height and width that all images are brought to."""
    channels: int = 3
    """1 for grey images, 3 for colour: what all images are brought to."""
    normalise: Normalise = "authors"
    """How pixels are scaled: "authors", by the mean and deviation of each data set that the authors' code has (those of
    Omniglot belong to images that are not inverted, so the ground becomes about -11); "own", by each source's own;
    "common", by one mean and deviation of all sources together, so that nobody need say where an image comes from."""

    def __post_init__(self) -> None:
        check_sources(self.sources, self.horizontal_flip, self.channels)
        at_least(1, ways=self.ways, per_class=self.per_class, image_size=self.image_size)
        at_least(0, max_trim=self.max_trim, prototypical_loss=self.prototypical_loss, augment=self.augment)
        if self.max_trim >= self.segment_length:
            raise ValueError(
                f"max_trim={self.max_trim} could leave nothing of a segment of {self.ways} x {self.per_class} images; "
                f"expected at most {self.segment_length - 1}"
            )

    @property
    def segment_length(self) -> int:
        """Images of a segment before trimming."""
        return self.ways * self.per_class

    @property
    def length(self) -> int:
        """Images of a stream before trimming."""
        return len(self.sources) * self.segment_length


@dataclass(frozen=True)
class StreamTrainConfig(TrainConfig):
    """How long, how much at once, and how often to look; an episode is a whole stream."""

    batch_size: int = 32
    """Streams of a step, over all processes."""
    grad_accum_steps: int = 2
    """Parts that a process cuts its batch into, one after the other; each part has an order and trims of its own. The
    authors' batch of 32 is two of 16."""
    total_steps: int = 238_266
    """Steps of the training. (The authors' loop ends with mini-ImageNet's 476,532 batches of 16, two a step.)"""
    validate_every: int = 2000
    """Steps between two validations."""
    validation_episodes: int = 400
    """Streams of a validation in each order; always the same ones."""
    test_sets: int = 5
    """Sets of test streams at the end."""
    test_episodes: int = 816
    """Streams of each test set in each order."""
    truncate: int | None = None
    """Steps that gradients go back through; the state goes on beyond them. None for the whole stream. With it, streams
    of any length train in bounded memory."""
    carry_state_prob: float = 0.0
    """Share of the training streams that begin with the state in which the last one ended, without its gradients: 0
    (the paper) resets all. A network that was never trained on a horizon longer than one stream forgets how to
    learn in a longer one; with 0.9, a life lasts ten streams on average. What was trimmed away is read, too, then."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.truncate is not None:
            at_least(1, truncate=self.truncate)
        if not 0 <= self.carry_state_prob <= 1:
            raise ValueError(f"carry_state_prob={self.carry_state_prob}; expected 0 to 1")


@dataclass(frozen=True)
class SequentialConfig(RecipeConfig):
    """A recipe: everything that a run is made of."""

    stream: StreamConfig = field(default_factory=StreamConfig)
    """What a stream is."""
    model: ModelConfig = field(default_factory=lambda: ModelConfig(encoder_channels=32, num_layers=3, ff_size=256))
    """The network."""
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=3e-4))
    """Adam and its learning rate."""
    train: StreamTrainConfig = field(default_factory=StreamTrainConfig)
    """How long, how much at once, and how often to look."""

    @property
    def trained_length(self) -> float:
        """Steps that a stream of the training lasts until it is reset, on average; infinite if it never is.

        With `train.carry_state_prob`, a stream mostly goes on where the last one ended.
        """
        carry = self.train.carry_state_prob
        return self.stream.length / (1 - carry) if carry < 1 else math.inf
