"""Banks, recipes and runs that are small enough to be trained within a test."""

from dataclasses import replace

import torch

from fewshot.tiny import image_set
from srwm.continual import (
    ContinualConfig,
    ContinualModel,
    ContinualTrainConfig,
    ContinualTrainer,
    LossConfig,
    TaskBank,
    TasksConfig,
)
from srwm.supervised.config import ModelConfig, OptimizerConfig

SIZE = 16
CPU = torch.device("cpu")


def bank(sets: int = 1, classes: int = 8, per_class: int = 6, seed: int = 0) -> TaskBank:
    """Sources named a, b, ...; the second ones are dark, so that they can be told apart."""
    made = [image_set(classes, per_class, seed + 10 * i) for i in range(sets)]
    made = [replace(one, name=f"source{i}", images=one.images // (i + 1)) for i, one in enumerate(made)]
    return TaskBank.of_sets([chr(ord("a") + i) for i in range(sets)], made)


def config(**parts) -> ContinualConfig:
    """A small recipe; `config(tasks={"ways": 3})` changes single values."""
    base = ContinualConfig(
        tasks=TasksConfig(sources=("a",), tasks=3, ways=2, shots=2, queries=2, image_size=SIZE, channels=1),
        loss=LossConfig(),
        model=ModelConfig(
            encoder_norm="instance",
            encoder_channels=4,
            hidden_size=8,
            num_heads=2,
            ff_size=8,
            num_layers=1,
            label_slot="no_label",
        ),
        optimizer=OptimizerConfig(learning_rate=5e-3),
        train=ContinualTrainConfig(
            batch_size=4,
            total_steps=6,
            log_every=2,
            validate_every=3,
            checkpoint_every=3,
            validation_episodes=10,
            test_episodes=6,
        ),
    )
    changed = {
        name: replace(getattr(base, name), **value) if isinstance(value, dict) else value
        for name, value in parts.items()
    }
    return replace(base, **changed)


def trainer(*, sets: int = 1, **parts) -> ContinualTrainer:
    tasks = {"sources": tuple(chr(ord("a") + i) for i in range(sets)), **parts.pop("tasks", {})}
    return ContinualTrainer(config(tasks=tasks, **parts), bank(sets), bank(sets, seed=1), CPU)


def model(**parts) -> ContinualModel:
    torch.manual_seed(0)
    return ContinualModel(config(**parts)).eval()
