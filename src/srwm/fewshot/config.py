"""What a few-shot run is made of: the task, the model, the optimiser and the training."""

from dataclasses import dataclass, field
from typing import Any, Literal

from srwm.nn.sequence_model import Memory
from srwm.vision import DropoutVariant

LabelSlot = Literal["class_zero", "no_label"]
"""What stands in the place of a query's label: the one-hot of class 0 (the authors), or a token of its own."""


@dataclass(frozen=True)
class TaskConfig:
    """What an episode is."""

    source: str = "omniglot"
    """Where the images come from: a name that `srwm data list` shows, or folder:PATH."""
    ways: int = 5
    """Classes of an episode."""
    shots: int = 1
    """Labelled images of each class."""
    queries: int = 1
    """Images to classify in a training episode; all are read from the same state."""
    take_turns: bool = False
    """Whether in training all images of an episode take turns as the support, the others being the queries: several
    times as much to learn from, at no cost to the vision part. Queries must be a multiple of ways times shots."""
    metric_loss: float = 0.0
    """Weight of a second loss in training, which asks the features alone to tell queries apart by their distance from
    the mean of each class (prototypical networks); the vision part learns sooner what is worth remembering."""
    image_size: int | None = None
    """Height and width of the images; none for the source's own."""
    channels: int | None = None
    """1 for grey images, 3 for colour; none for the source's own."""
    invert: bool = False
    """Whether the images show dark ink on light paper and are to be turned into bright ink on dark, as Omniglot and
    Strokes are: augmentation fills the corners with black. For a folder of your own; `srwm stream --invert` is the
    same."""
    mirror: bool = False
    """Whether in training each image is mirrored, left to right, half of the time: a mirrored cat is a cat, but a
    mirrored letter is another one."""
    augment: float = 0.0
    """Random turns, scalings and shifts of each training image by itself; 0 is none, 1 is strong."""
    augment_episodes: float = 0.0
    """Random turns, scalings and mirrorings of all images of an episode together, which make new classes; 0 is none."""

    def __post_init__(self) -> None:
        _at_least(1, ways=self.ways, shots=self.shots, queries=self.queries)
        _at_least(0, augment=self.augment, augment_episodes=self.augment_episodes, metric_loss=self.metric_loss)
        if self.take_turns and self.queries % (self.ways * self.shots):
            raise ValueError(
                f"queries={self.queries} cannot take turns as a support of {self.ways} times {self.shots} images; "
                f"choose a multiple of {self.ways * self.shots}"
            )


@dataclass(frozen=True)
class BootstrapConfig:
    """Bootstrapped training: a model learns to know after its support what it would know after more images.

    Irie and Schmidhuber (2023), "Accelerating neural self-improvement via bootstrapping", arXiv 2305.01547. A training
    episode goes on behind its support with further labelled images. Its queries are answered from the state after the
    support and from the one after these, and the second answers are a target for the first. Validation and test are as
    ever. All images of an episode pass the vision part together, as in plain training; the authors' code passes
    support, further images and queries one after the other, so that each has batch statistics of its own.
    """

    future_shots: int = 0
    """Further labelled images of each class that a training episode goes on with; 0 for plain training."""
    target: Literal["answers", "weights"] = "answers"
    """What is pulled to what it becomes: "answers", by the Kullback-Leibler divergence KL(later || first) of the
    answers after the further images from those after the support; or "weights", by the mean squared difference of each
    sub-matrix of each layer. No gradient goes through the target."""
    weight: float = 10.0
    """Weight of that loss."""
    support_weight: float = 1.0
    """Weight of the cross-entropy of the answers after the support, the plain loss."""
    future_weight: float = 1.0
    """Weight of the cross-entropy of the answers after the further images, by which the target learns."""

    def __post_init__(self) -> None:
        weights = ("weight", "support_weight", "future_weight")
        _at_least(0, **{name: getattr(self, name) for name in ("future_shots", *weights)})


@dataclass(frozen=True)
class ModelConfig:
    """The network."""

    vision: Literal["conv4", "res12"] = "conv4"
    """What turns an image into features."""
    vision_channels: int = 64
    """Channels of each layer of Conv-4, or features of Res-12 (256 or 512)."""
    vision_dropout: float = 0.0
    """Dropout in the vision part."""
    dropout_variant: DropoutVariant = "base"
    """Where Res-12 drops."""
    feature_norm: bool = False
    """Whether features pass through a batch norm of their own. Without it (the paper) they are positive and much alike,
    which is why training stays at chance for long."""
    memory: Memory = "srwm"
    """What learns within an episode."""
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
        sizes = ("hidden_size", "num_layers", "num_heads", "vision_channels")
        _at_least(1, **{name: getattr(self, name) for name in sizes})
        for name in ("vision_dropout", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}; wanted 0 or more and less than 1")
        if self.memory != "lstm" and self.hidden_size % self.num_heads:
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
        _at_least(0, learning_rate=self.learning_rate, warmup_steps=self.warmup_steps, eps=self.eps)
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}; wanted 0 or more and less than 1")
        if self.clip_norm is not None and self.clip_norm <= 0:
            raise ValueError(f"clip_norm={self.clip_norm}; wanted more than 0, or none")
        if self.schedule == "noam" and self.warmup_steps < 1:
            raise ValueError(f"warmup_steps={self.warmup_steps}; the noam schedule wants at least 1")


@dataclass(frozen=True)
class TrainConfig:
    """How long, how much at once, and how often to look."""

    batch_size: int = 128
    """Episodes of a step, over all processes."""
    accumulate: int = 1
    """Parts that a process cuts its batch into, one after the other, to save memory."""
    total_steps: int = 300_000
    """Steps of the training."""
    precision: Literal["float32", "tf32", "bfloat16"] = "tf32"
    """Arithmetic on a GPU: full float32; tensor cores (tf32); or bfloat16 in the vision part and tf32 elsewhere."""
    deterministic: bool = True
    """Whether equal runs give equal bits on a GPU, too, at some cost in speed."""
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
        sizes = ("batch_size", "accumulate", "total_steps", "log_every", "validate_every", "validation_episodes")
        _at_least(
            1, **{name: getattr(self, name) for name in (*sizes, "checkpoint_every", "test_sets", "test_episodes")}
        )
        if self.batch_size % self.accumulate:
            raise ValueError(f"batch_size={self.batch_size} is not a multiple of accumulate={self.accumulate}")


@dataclass(frozen=True)
class FewShotConfig:
    """A recipe: everything that a run is made of."""

    recipe: str = "custom"
    """Name of the recipe that this came from."""
    seed: int = 0
    """Seed of the weights, the episodes and the dropout."""
    task: TaskConfig = field(default_factory=TaskConfig)
    """What an episode is."""
    bootstrap: BootstrapConfig = field(default_factory=BootstrapConfig)
    """Whether and how training is bootstrapped."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The network."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """Adam and its learning rate."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """How long, how much at once, and how often to look."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**62:
            raise ValueError(f"seed={self.seed}; wanted 0 or more and less than 2**62")
        if not self.bootstrap.future_shots:
            return
        if self.task.take_turns:
            raise ValueError("bootstrapped training and task.take_turns do not go together; choose one of them")
        if self.model.memory in ("fake_srwm", "feed_forward", "none"):
            raise ValueError(f"memory={self.model.memory!r} remembers nothing, so its training cannot be bootstrapped")

    @property
    def episode_images(self) -> int:
        """Images of a training episode."""
        return self.task.ways * (self.task.shots + self.bootstrap.future_shots) + self.task.queries


def _at_least(least: int, **values: int | float) -> None:
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name}={value}; wanted at least {least}")
