"""How fast a recipe of continual learning trains on this machine."""

from dataclasses import replace

import torch

from srwm.continual.bank import TaskBank
from srwm.continual.config import ContinualConfig, TasksConfig
from srwm.continual.recipes import RECIPES
from srwm.continual.trainer import ContinualTrainer
from srwm.continual.training_run import loop_options
from srwm.data import ImageSet
from srwm.supervised.bank import source_names

from ._training import TrainingBench

_CLASSES = 64


def random_trainer(config: ContinualConfig, device: torch.device) -> ContinualTrainer:
    """A trainer on random images of the right shape."""
    bank = _random_bank(config.tasks)
    return ContinualTrainer(replace(config, seed=0), bank, bank, device)


def _random_bank(tasks: TasksConfig) -> TaskBank:
    generator = torch.Generator().manual_seed(0)
    classes, per_class = max(_CLASSES, tasks.ways * tasks.rounds), tasks.shots + tasks.queries
    shape = (classes * per_class, tasks.channels, tasks.image_size, tasks.image_size)
    names = source_names(tasks.sources)
    sets = [
        ImageSet.of_counts(
            name,
            torch.randint(256, shape, dtype=torch.uint8, generator=generator),
            [per_class] * classes,
            [str(i) for i in range(classes)],
        )
        for name in names
    ]
    return TaskBank.of_sets(names, sets)


CONTINUAL = TrainingBench(
    RECIPES,
    train_step=lambda config, device: random_trainer(config, device).train_step,
    loop_options=loop_options,
    title="Training on tasks, whole step",
)
