"""Recipes and networks that are small enough to be trained within a test."""

from dataclasses import replace

import torch

from srwm.supervised.config import OptimizerConfig
from srwm.tabular import PriorConfig, TabularConfig, TabularModel, TabularModelConfig, TabularTrainConfig


def config(**parts) -> TabularConfig:
    """A small recipe; `config(prior={"most_classes": 4})` changes single values."""
    base = TabularConfig(
        prior=PriorConfig(most_features=6, most_classes=5, examples=12, long_examples=24),
        model=TabularModelConfig(width=4, hidden_size=8, num_heads=2, ff_size=8, num_layers=1),
        optimizer=OptimizerConfig(warmup_steps=2, schedule="cosine", clip_norm=1.0),
        train=TabularTrainConfig(batch_size=4, total_steps=6, log_every=2, checkpoint_every=3, test_tasks=5),
    )
    changed = {
        name: replace(getattr(base, name), **value) if isinstance(value, dict) else value
        for name, value in parts.items()
    }
    return replace(base, **changed)


def network(**parts) -> TabularModel:
    """A network with random weights, in float64."""
    torch.manual_seed(0)
    return TabularModel(config(**parts)).double()
