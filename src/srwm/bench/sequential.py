"""How fast a recipe of streams trains on this machine."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from srwm.data import ImageSet
from srwm.sequential.bank import Bank, distinct_sources, set_names
from srwm.sequential.config import SequentialConfig, StreamConfig
from srwm.sequential.recipes import RECIPES
from srwm.sequential.trainer import SequentialTrainer
from srwm.sequential.training_run import loop_options

from ._training import bench_training

_CLASSES = 32


def bench_sequential(
    recipes: Sequence[str], device_name: str, assignments: Sequence[str], json_path: Path | None, budget_s: float = 4.0
) -> int:
    """Time the whole training step of recipes, interleaved, on random images of the right shape.

    Args:
        recipes: names of recipes of streams.
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
        title="Training on streams, whole step",
        note="; trimmed images count, too",
        device_name=device_name,
        assignments=assignments,
        json_path=json_path,
        budget_s=budget_s,
    )


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
