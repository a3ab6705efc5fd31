"""How fast a recipe of continual learning trains on this machine."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from srwm.continual.bank import TaskBank, source_names
from srwm.continual.config import ContinualConfig, TasksConfig
from srwm.continual.recipes import RECIPES
from srwm.continual.trainer import ContinualTrainer
from srwm.continual.training_run import loop_options
from srwm.data import ImageSet

from ._training import bench_training

_CLASSES = 64


def bench_continual(
    recipes: Sequence[str], device_name: str, assignments: Sequence[str], json_path: Path | None, budget_s: float = 4.0
) -> int:
    """Time the whole training step of recipes, interleaved, on random images of the right shape.

    Args:
        recipes: names of recipes of continual learning.
        device_name: "auto", "cpu" or "cuda".
        assignments: changes to all of them, such as `train.precision=bfloat16`.
        json_path: where to write the results too; None for nowhere.
        budget_s: about how long each is measured.

    Returns:
        The exit status.
    """
    return bench_training(
        recipes,
        RECIPES,
        train_step=lambda config, device: random_trainer(config, device).train_step,
        loop_options=loop_options,
        title="Training on tasks, whole step",
        device_name=device_name,
        assignments=assignments,
        json_path=json_path,
        budget_s=budget_s,
    )


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
