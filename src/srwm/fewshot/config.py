"""What a few-shot run is made of: the task, the model, the optimiser and the training."""

from dataclasses import dataclass, field
from typing import Literal

from srwm.nn import known_memory
from srwm.runs.config import RecipeConfig, at_least
from srwm.supervised.config import ModelConfig, OptimizerConfig, TrainConfig


@dataclass(frozen=True)
class FewShotTaskConfig:
    """What an episode is."""

    source: str = "omniglot"
    """Where the images come from: a name that `srwm data list` shows, or folder:PATH; several with commas give their
    classes together, at one image_size and one number of channels."""
    ways: int = 5
    """Classes of an episode."""
    shots: int = 1
    """Labelled images of each class."""
    queries: int = 1
    """Images to classify in a training episode; all are read from the same state."""
    rotate_support: bool = False
    """Whether in training the support rotates: each block of images of an episode is it once, the others being the
    queries: several times as much to learn from, at no cost to the encoder. Queries must be a multiple of ways times
    shots."""
    prototypical_loss: float = 0.0
    """Weight of a second loss in training, which asks the features alone to tell queries apart by their distance from
    the mean of each class (prototypical networks); the encoder learns sooner what is worth remembering."""
    image_size: int | None = None
    """Height and width of the images; none for the source's own."""
    channels: int | None = None
    """1 for grey images, 3 for colour; none for the source's own."""
    invert: bool = False
    """Whether the images show dark ink on light paper and are to be turned into bright ink on dark, as Omniglot and
    Strokes are: augmentation fills the corners with black. For a folder of your own; `srwm stream --invert` is the
    same."""
    horizontal_flip: bool = False
    """Whether in training each image is mirrored, left to right, half of the time: a mirrored cat is a cat, but a
    mirrored letter is another one."""
    augment: float = 0.0
    """Random affine maps (rotation, scaling, shear, shift) of each training image by itself; 0 is none, 1 is strong."""
    augment_episodes: float = 0.0
    """Random affine maps and mirroring of all images of an episode together, which make new classes; 0 is none."""

    def __post_init__(self) -> None:
        at_least(1, ways=self.ways, shots=self.shots, queries=self.queries)
        at_least(
            0, augment=self.augment, augment_episodes=self.augment_episodes, prototypical_loss=self.prototypical_loss
        )
        if self.rotate_support and self.queries % (self.ways * self.shots):
            raise ValueError(
                f"queries={self.queries} cannot rotate with a support of {self.ways} times {self.shots} images; "
                f"choose a multiple of {self.ways * self.shots}"
            )


@dataclass(frozen=True)
class BootstrapConfig:
    """Bootstrapped training: a model learns to know after its support what it would know after more images.

    Irie and Schmidhuber (2023), "Accelerating neural self-improvement via bootstrapping", arXiv 2305.01547. A training
    episode goes on behind its support with further labelled images. Its queries are answered from the state after the
    support and from the one after these, and the second answers are a target for the first. Validation and test are as
    ever. All images of an episode pass the encoder together, as in plain training; the authors' code passes
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
        at_least(0, **{name: getattr(self, name) for name in ("future_shots", *weights)})


@dataclass(frozen=True)
class FewShotConfig(RecipeConfig):
    """A recipe: everything that a run is made of."""

    task: FewShotTaskConfig = field(default_factory=FewShotTaskConfig)
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
        super().__post_init__()
        if not self.bootstrap.future_shots:
            return
        if self.task.rotate_support:
            raise ValueError("bootstrapped training and task.rotate_support do not go together; choose one of them")
        memory = known_memory(self.model.memory)
        if memory is not None and memory.is_stateless:
            raise ValueError(f"memory={self.model.memory!r} remembers nothing, so its training cannot be bootstrapped")

    @property
    def episode_images(self) -> int:
        """Images of a training episode."""
        return self.task.ways * (self.task.shots + self.bootstrap.future_shots) + self.task.queries
