"""How fast a recipe of streams trains on this machine."""

from dataclasses import replace

import torch

from srwm.sequential.bank import Bank, distinct_sources, set_names
from srwm.sequential.config import SequentialConfig, StreamConfig
from srwm.sequential.recipes import RECIPES
from srwm.sequential.trainer import SequentialTrainer, loop_options

from ._training import TrainingBench, random_sets

_CLASSES = 32


def random_trainer(config: SequentialConfig, device: torch.device) -> SequentialTrainer:
    """A trainer on random images of the right shape."""
    bank = _random_bank(config.stream)
    return SequentialTrainer(replace(config, seed=0), bank, bank, device)


def _random_bank(stream: StreamConfig) -> Bank:
    classes, per_class = max(_CLASSES, stream.ways), stream.per_class + 1
    names, words = set_names(stream), distinct_sources(stream)
    sets = random_sets(names, classes, per_class, stream.channels, stream.image_size)
    return Bank.of_sets(names, sets, [words.index(word) for word in stream.sources])


SEQUENTIAL = TrainingBench(
    RECIPES,
    trainer=random_trainer,
    loop_options=loop_options,
    title="Training on streams, whole step",
    note="; trimmed images count, too",
)
