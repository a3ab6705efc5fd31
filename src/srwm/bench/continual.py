"""How fast a recipe of continual learning trains on this machine."""

from dataclasses import replace

import torch

from srwm.continual.bank import TaskBank
from srwm.continual.config import ContinualConfig, TasksConfig
from srwm.continual.recipes import RECIPES
from srwm.continual.trainer import ContinualTrainer, loop_options
from srwm.supervised.bank import source_names

from ._training import TrainingBench, random_sets

_CLASSES = 64


def random_trainer(config: ContinualConfig, device: torch.device) -> ContinualTrainer:
    """A trainer on random images of the right shape."""
    bank = _random_bank(config.tasks)
    return ContinualTrainer(replace(config, seed=0), bank, bank, device)


def _random_bank(tasks: TasksConfig) -> TaskBank:
    classes, per_class = max(_CLASSES, tasks.ways * tasks.rounds), tasks.shots + tasks.queries
    names = source_names(tasks.sources)
    return TaskBank.of_sets(names, random_sets(names, classes, per_class, tasks.channels, tasks.image_size))


CONTINUAL = TrainingBench(
    RECIPES,
    trainer=random_trainer,
    loop_options=loop_options,
    title="Training on tasks, whole step",
)
