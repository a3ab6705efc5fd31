"""Where the tasks of a run come from: the prior, or a pack of features."""

from pathlib import Path
from typing import Protocol, runtime_checkable

import torch

from srwm.data import FeatureSet, check_enough, draw_episodes, load_features
from srwm.data.random import random_bits, stream_key

from .config import FeaturesConfig, TabularConfig
from .prior import Tasks, draw_tasks

__all__ = ["Episodic", "FromPrior", "TaskSource", "task_source"]

_SLOTS = 1 << 33
"""Beyond the numbers of all other streams: those of the outputs that stand for the classes of an episode."""


@runtime_checkable
class TaskSource(Protocol):
    """Gives the tasks of a step, as a pure function of its arguments."""

    def draw(self, *, seed: int, rng_stream: int, step: int, batch_size: int) -> Tasks:
        """Draw the tasks of a step."""


class FromPrior:
    """Random tasks; in every fourth batch fewer and longer ones."""

    def __init__(self, config: TabularConfig) -> None:
        self.prior = config.prior

    def draw(self, *, seed: int, rng_stream: int, step: int, batch_size: int) -> Tasks:
        """Draw the tasks of a step."""
        prior = self.prior
        is_long = step % 4 == 3
        examples = prior.long_examples if is_long else prior.examples
        size = max(1, batch_size * prior.examples // examples) if is_long else batch_size
        return draw_tasks(prior, seed=seed, rng_stream=rng_stream, step=step, batch_size=size, examples=examples)


class Episodic:
    """Episodes of classes of a pack of features; each example in turn, the ones to learn from first.

    Args:
        features: where examples come from.
        config: how large an episode is.
        classes: outputs of the network's head, of which each class of an episode takes one at random.

    Raises:
        InputError: if there are too few classes, or a class has too few examples.
    """

    def __init__(self, features: FeatureSet, config: FeaturesConfig, classes: int) -> None:
        check_enough(features, config.ways, config.shots, config.queries)
        self.features, self.config, self.classes = features, config, classes

    def draw(self, *, seed: int, rng_stream: int, step: int, batch_size: int) -> Tasks:
        """Draw the tasks of a step; the scale of features is that of the examples to learn from."""
        config, number = self.config, torch.tensor(step)
        drawn = draw_episodes(
            self.features,
            number,
            batch_size=batch_size,
            ways=config.ways,
            shots=config.shots,
            queries=config.queries,
            seed=seed,
            rng_stream=rng_stream,
        )
        places = torch.cat([drawn.support, drawn.query], dim=1)
        labels = torch.cat([drawn.support_labels, drawn.query_labels], dim=1)
        slots = random_bits(stream_key(seed, _SLOTS + rng_stream, number), (batch_size, self.classes)).argsort(dim=1)
        x = self.features.features[places]
        whole = torch.full((batch_size,), drawn.support.shape[1])
        return Tasks(x, slots.gather(1, labels), torch.full((batch_size,), x.shape[2]), whole)


def task_source(config: TabularConfig, split: str, folder: Path | None = None) -> TaskSource:
    """Find where the tasks of a recipe come from.

    Args:
        config: the recipe.
        split: of a pack of features: "train", "validation" or "test".
        folder: the data folder.

    Raises:
        InputError: if the pack is not there, or has too little for such tasks.
    """
    if config.features is None:
        return FromPrior(config)
    features = load_features(config.features.source, split, folder=folder)
    return Episodic(features, config.features, config.prior.most_classes)
