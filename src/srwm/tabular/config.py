"""What a run on tasks of feature vectors is made of: the prior, the network, the optimiser and the training."""

from dataclasses import dataclass, field
from typing import Any

from srwm.nn import Memory
from srwm.runs.config import RecipeConfig, at_least
from srwm.supervised.config import OptimizerConfig


@dataclass(frozen=True)
class PriorConfig:
    """What random tasks are drawn: how many features, classes and examples, and how messy."""

    most_features: int = 100
    """Features of a task: from 1 to so many, small numbers as often as large ones."""
    most_classes: int = 10
    """Classes of a task: from 2 to so many. So many has the network's head."""
    examples: int = 64
    """Examples of a task."""
    long_examples: int = 256
    """Examples of a task in every fourth batch, which has as many fewer tasks."""
    label_noise: float = 0.2
    """Of three tasks in ten, so large a share of the labels, at most, is wrong."""
    irrelevant: float = 0.6
    """Of six tasks in ten, so large a share of the features, at most, says nothing about the class."""
    imbalance: float = 0.4
    """Share of the tasks whose classes are not equally frequent."""
    whole_support: float = 0.5
    """Share of the tasks whose features are standardised by the statistics of all examples up to one at a random
    place; of the others by those of the examples so far."""

    def __post_init__(self) -> None:
        at_least(1, most_features=self.most_features)
        at_least(2, most_classes=self.most_classes)
        at_least(8, examples=self.examples, long_examples=self.long_examples)
        for name in ("label_noise", "irrelevant", "imbalance", "whole_support"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)}; expected 0 to 1")


@dataclass(frozen=True)
class TabularModelConfig:
    """The network: what it reads of an example, and the memory that learns."""

    width: int = 32
    """Numbers that the standardised features of an example become, however many they are."""
    nearest_mean: bool = True
    """Whether its scores are added to those of nearest mean, which it then learns to correct; it always reads them."""
    memory: Memory = "srwm"
    """What learns a task."""
    hidden_size: int = 128
    """Width of the sequence network."""
    num_layers: int = 2
    """Layers, each a memory and a feed-forward sub-layer."""
    num_heads: int = 4
    """Heads of each memory; must divide hidden_size."""
    ff_size: int | None = 256
    """Inner width of the feed-forward sub-layers; none for 4 times hidden_size."""
    memory_options: dict[str, Any] = field(
        default_factory=lambda: {"key_map": "l2", "forget_gates": 2, "input_projection": True}
    )
    """Further options of the memory."""

    def __post_init__(self) -> None:
        at_least(1, width=self.width, hidden_size=self.hidden_size, num_layers=self.num_layers)
        at_least(1, num_heads=self.num_heads)


@dataclass(frozen=True)
class FeaturesConfig:
    """Tasks of a pack of features (`srwm data import features`): N-way K-shot episodes, one example after the other."""

    source: str = "features"
    """The pack: its name, or its path."""
    ways: int = 5
    """Classes of a task."""
    shots: int = 5
    """Examples of each class to learn from; in training each of them is also asked for, before its label is known."""
    queries: int = 15
    """Further examples of a task."""

    def __post_init__(self) -> None:
        at_least(2, ways=self.ways)
        at_least(1, shots=self.shots, queries=self.queries)


@dataclass(frozen=True)
class TabularTrainConfig:
    """How long, how much at once, and how often to look."""

    batch_size: int = 64
    """Tasks of a step."""
    total_steps: int = 3900
    """Steps of the training."""
    log_every: int = 50
    """Steps between two lines of metrics."""
    checkpoint_every: int = 500
    """Steps between two checkpoints."""
    test_tasks: int = 1000
    """Tasks of the test, which no training draws."""

    def __post_init__(self) -> None:
        names = ("batch_size", "total_steps", "log_every", "checkpoint_every", "test_tasks")
        at_least(1, **{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class TabularConfig(RecipeConfig):
    """A recipe: everything that a run is made of."""

    prior: PriorConfig = field(default_factory=PriorConfig)
    """What random tasks are drawn."""
    features: FeaturesConfig | None = None
    """Real tasks in the place of random ones; none for random ones."""
    initial: str | None = None
    """A trained model whose weights the training begins with; none for random weights."""
    model: TabularModelConfig = field(default_factory=TabularModelConfig)
    """The network."""
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=2e-3, schedule="cosine", warmup_steps=200, clip_norm=1.0)
    )
    """Adam and its learning rate."""
    train: TabularTrainConfig = field(default_factory=TabularTrainConfig)
    """How long, how much at once, and how often to look."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features is not None and self.features.ways > self.prior.most_classes:
            raise ValueError(
                f"features.ways={self.features.ways}; expected {self.prior.most_classes} (prior.most_classes) at most: "
                "so many classes has the network's head"
            )
