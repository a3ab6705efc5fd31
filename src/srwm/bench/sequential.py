"""How fast a recipe of streams trains on this machine."""

from dataclasses import replace

import torch

from srwm.data import ImageSet
from srwm.sequential.bank import Bank, distinct_sources, set_names
from srwm.sequential.config import SequentialConfig, StreamConfig
from srwm.sequential.recipes import RECIPES
from srwm.sequential.trainer import SequentialTrainer
from srwm.sequential.training_run import loop_options

from ._training import TrainingBench

_CLASSES = 32


def random_trainer(config: SequentialConfig, device: torch.device) -> SequentialTrainer:
    """A trainer on random images of the right shape."""
    bank = _random_bank(config.stream)
    return SequentialTrainer(replace(config, seed=0), bank, bank, device)


def _random_bank(stream: StreamConfig) -> Bank:
    generator = torch.Generator().manual_seed(0)
    classes, per_class = max(_CLASSES, stream.ways), stream.per_class + 1
    shape = (classes * per_class, stream.channels, stream.image_size, stream.image_size)
    sets = [
        ImageSet.of_counts(
            name,
            torch.randint(256, shape, dtype=torch.uint8, generator=generator),
            [per_class] * classes,
            [str(i) for i in range(classes)],
        )
        for name in set_names(stream)
    ]
    words = distinct_sources(stream)
    return Bank.of_sets(set_names(stream), sets, [words.index(word) for word in stream.sources])


SEQUENTIAL = TrainingBench(
    RECIPES,
    train_step=lambda config, device: random_trainer(config, device).train_step,
    loop_options=loop_options,
    title="Training on streams, whole step",
    note="; trimmed images count, too",
)
