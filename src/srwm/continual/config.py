"""What a run of continual learning is made of: the sequence of tasks, the losses, the network and the training."""

from dataclasses import dataclass, field
from typing import Literal

from srwm.runs.config import RecipeConfig, at_least
from srwm.supervised.config import ModelConfig, OptimizerConfig, Order, TrainConfig, check_sources

Labels = Literal["class_incremental", "domain_incremental"]
"""What the labels of a task are: new ones for each task, or the same for all."""

MOST_TASKS = 100


@dataclass(frozen=True)
class TasksConfig:
    """What a sequence of tasks is: the labelled examples of one task after the other."""

    sources: tuple[str, ...] = ("omniglot",)
    """Where the images come from: names that `srwm data list` shows, or folder:PATH. With several, the tasks take turns
    among them; with one, each task has other classes of it. Tasks of a sequence never share a class."""
    tasks: int = 5
    """Tasks of a sequence."""
    ways: int = 2
    """Classes of a task."""
    shots: int = 5
    """Labelled examples of each class."""
    queries: int = 4
    """Images of each class that are asked for. Those of a task are asked for at its own end and again at the end of
    every later task; they never write."""
    replays: int = 1
    """Sequences that training makes of the same images, each with other tasks, labels and examples: several times as
    much to learn from, at no cost to the encoder."""
    labels: Labels = "class_incremental"
    """Either "class_incremental": the labels of each task follow those of the task before, and an answer is one of them
    all; or "domain_incremental": every task has the labels 0 to ways - 1, and nobody says which task a query is of."""
    classes: int | None = None
    """Labels that the model tells apart; none for as many as its sequences need. More let it go on with more tasks."""
    order: Order = "alternating"
    """Which source comes first in training: alternating (the paper), random, or fixed."""
    image_size: int = 32
    """Height and width that all images are brought to."""
    channels: int = 3
    """1 for grey images, 3 for colour: what all images are brought to."""
    horizontal_flip: tuple[str, ...] = ()
    """Those of the sources whose images are mirrored in training, left to right, each half of the time."""
    augment: float = 0.0
    """Random turns, scalings and shifts of each training image by itself; 0 is none, 1 is strong."""
    augment_sequences: float = 0.0
    """Random turns, scalings and mirrorings of all images of a sequence together, which make new classes."""
    thicken: float = 0.0
    """How much thicker bright strokes on dark become, at random for each training image: up to so many pixels on either
    side. Omniglot's pen is thin, that of MNIST is not."""

    def __post_init__(self) -> None:
        check_sources(self.sources, self.horizontal_flip, self.channels)
        at_least(
            1, **{name: getattr(self, name) for name in ("tasks", "ways", "shots", "queries", "replays", "image_size")}
        )
        at_least(0, augment=self.augment, augment_sequences=self.augment_sequences, thicken=self.thicken)
        if self.tasks > MOST_TASKS:
            raise ValueError(f"tasks={self.tasks}; expected 1 to {MOST_TASKS}")
        if self.classes is not None and self.classes < self.labels_needed:
            raise ValueError(
                f"classes={self.classes}; {self.tasks} {self.ways}-way tasks with {self.labels} labels need "
                f"{self.labels_needed}"
            )

    @property
    def labels_needed(self) -> int:
        """Labels that a sequence needs."""
        return self.ways * (self.tasks if self.labels == "class_incremental" else 1)

    @property
    def num_classes(self) -> int:
        """Labels that the model tells apart."""
        return self.labels_needed if self.classes is None else self.classes

    @property
    def images(self) -> int:
        """Images of a training sequence: examples and queries."""
        return self.tasks * self.ways * (self.shots + self.queries)

    @property
    def rounds(self) -> int:
        """Tasks of a sequence that come from one source, at the most."""
        return -(-self.tasks // len(self.sources))


@dataclass(frozen=True)
class LossConfig:
    """The terms of the loss, and their weights.

    The term "task i after task j" is the mean cross-entropy of the queries of task i, read from the state after task j.
    The loss is the weighted mean of these n (n + 1) / 2 terms, plus the auxiliary ones.
    """

    forward: float = 1.0
    """Weight of each term about the task that was just learnt (i = j)."""
    backward: float = 1.0
    """Weight of each term about an earlier task (i < j): what teaches the model not to forget. 0 leaves them out."""
    few_shot: float = 0.0
    """Weight of a further term for each task: its queries after one example of each of its classes alone, read from a
    new state, which is dropped."""
    prototypical: float = 0.0
    """Weight of a loss that asks the features alone to tell the queries of all tasks apart, by their distance from the
    mean of the examples of each class; the encoder learns sooner what is worth remembering."""
    sources: tuple[float, ...] = ()
    """Factor on the terms "forward" and "few_shot" of the tasks from each source, in the order of the sources; none for
    1 each. (The authors' code has 0.1 for the first of its two.)"""

    def __post_init__(self) -> None:
        names = ("forward", "backward", "few_shot", "prototypical")
        at_least(0, **{name: getattr(self, name) for name in names})
        if any(weight < 0 for weight in self.sources):
            raise ValueError(f"sources={self.sources}; expected 0 or more for each source")


@dataclass(frozen=True)
class ContinualTrainConfig(TrainConfig):
    """How long, how much at once, and how often to look; an episode is a whole sequence of tasks."""

    batch_size: int = 64
    """Sequences of a step, over all processes."""
    total_steps: int = 20_000
    """Steps of the training."""
    validation_episodes: int = 400
    """Sequences of a validation; always the same ones."""
    test_sets: int = 1
    """Sets of test sequences at the end."""
    test_episodes: int = 1000
    """Sequences of each test set."""
    init_from: str | None = None
    """A trained model to go on from: the folder of a run or of an exported model. Its weights are read when the run
    begins, and when it is resumed; what does not fit in size is refused."""
    freeze_encoder: bool = False
    """Whether the encoder stays as it is, and only the sequence part is trained: for a model to go on from, at a third
    of the cost."""
    carry_state_prob: float = 0.0
    """Share of the training sequences that begin with the state in which the last one ended, without its gradients; the
    tasks of that one are asked about again at every boundary. 0 lets all begin anew; with 0.9, a life lasts ten
    sequences on average. For domain-incremental labels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.carry_state_prob <= 1:
            raise ValueError(f"carry_state_prob={self.carry_state_prob}; expected 0 to 1")


@dataclass(frozen=True)
class ContinualConfig(RecipeConfig):
    """A recipe: everything that a run is made of."""

    tasks: TasksConfig = field(default_factory=TasksConfig)
    """What a sequence of tasks is."""
    loss: LossConfig = field(default_factory=LossConfig)
    """The terms of the loss, and their weights."""
    model: ModelConfig = field(
        default_factory=lambda: ModelConfig(encoder_norm="instance", ff_size=512, label_slot="no_label")
    )
    """The network."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """Adam and its learning rate."""
    train: ContinualTrainConfig = field(default_factory=ContinualTrainConfig)
    """How long, how much at once, and how often to look."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss.sources and len(self.loss.sources) != len(self.tasks.sources):
            raise ValueError(
                f"loss.sources has {len(self.loss.sources)} factors for {len(self.tasks.sources)} sources; expected "
                "one for each, or none"
            )
        if self.train.carry_state_prob and self.tasks.replays > 1:
            raise ValueError("carry_state_prob and tasks.replays do not go together; choose one of them")
        if self.train.carry_state_prob and self.tasks.labels == "class_incremental":
            raise ValueError(
                "carry_state_prob is for domain-incremental labels: with class-incremental ones, the labels of a "
                "sequence are those of the one before"
            )
