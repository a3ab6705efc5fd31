"""Recipes and networks that are small enough to be trained within a test."""

from dataclasses import replace

import torch

from srwm.languages import (
    LanguagesConfig,
    LanguagesTrainConfig,
    LanguagesTrainer,
    NetworkConfig,
    StateTracker,
    TaskConfig,
)

CPU = torch.device("cpu")


def config(**parts) -> LanguagesConfig:
    """A small recipe; `config(task={"name": "s3"})` changes single values."""
    base = LanguagesConfig(
        task=TaskConfig(longest=8, test_lengths=("2-8", "12")),
        model=NetworkConfig(hidden_size=8, num_heads=2, ff_size=8, num_layers=1),
        train=LanguagesTrainConfig(batch_size=4, total_steps=6, log_every=2, checkpoint_every=3, test_sequences=5),
    )
    changed = {
        name: replace(getattr(base, name), **value) if isinstance(value, dict) else value
        for name, value in parts.items()
    }
    return replace(base, **changed)


def trainer(**parts) -> LanguagesTrainer:
    return LanguagesTrainer(config(**parts), CPU)


def network(**parts) -> StateTracker:
    torch.manual_seed(0)
    return StateTracker(config(**parts))
