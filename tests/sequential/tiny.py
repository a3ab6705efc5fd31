"""Banks, recipes and runs that are small enough to be trained within a test."""

from dataclasses import replace

import torch

from fewshot.tiny import image_set
from srwm.sequential import Bank, SequentialConfig, SequentialTrainer, StreamConfig, StreamModel, StreamTrainConfig
from srwm.supervised.config import ModelConfig, OptimizerConfig

SIZE = 16
CPU = torch.device("cpu")


def bank(sets: int = 2, classes: int = 6, per_class: int = 6, seed: int = 0) -> Bank:
    """Sets named a, b, ...; the second ones are dark, so that the sets can be told apart."""
    made = [image_set(classes, per_class, seed + 10 * i) for i in range(sets)]
    made = [replace(one, name=f"set{i}", images=one.images // (i + 1)) for i, one in enumerate(made)]
    return Bank.of_sets([chr(ord("a") + i) for i in range(sets)], made)


def config(**parts) -> SequentialConfig:
    """A small recipe; `config(stream={"ways": 2})` changes single values."""
    base = SequentialConfig(
        stream=StreamConfig(
            sources=("a", "b"), ways=3, per_class=4, max_trim=5, image_size=SIZE, channels=1, normalise="own"
        ),
        model=ModelConfig(encoder_channels=4, hidden_size=8, num_heads=2, ff_size=8, num_layers=1),
        optimizer=OptimizerConfig(learning_rate=5e-3),
        train=StreamTrainConfig(
            batch_size=4,
            total_steps=6,
            log_every=2,
            validate_every=3,
            checkpoint_every=3,
            validation_episodes=10,
            test_sets=2,
            test_episodes=6,
        ),
    )
    changed = {
        name: replace(getattr(base, name), **value) if isinstance(value, dict) else value
        for name, value in parts.items()
    }
    return replace(base, **changed)


def trainer(**parts) -> SequentialTrainer:
    return SequentialTrainer(config(**parts), bank(), bank(seed=1), CPU)


def model(**parts) -> StreamModel:
    torch.manual_seed(0)
    return StreamModel(config(**parts))
