"""Training and testing an agent from beginning to end: environments, trainer, iterations, test levels, result."""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

from srwm.runs.devices import set_deterministic
from srwm.runs.loop import LoopOptions
from srwm.runs.training import Run

from .config import RLConfig
from .evaluation import SplitResult, evaluate
from .procgen import LevelRange, LevelSplits, splits_of
from .trainer import RLTrainer

MAY_CHANGE = (
    "train.total_frames",
    "train.threads",
    "train.executor",
    "train.ray_address",
    "train.ray_gpus",
    "train.log_every",
    "train.test_levels",
)
"""What may differ when a run is resumed: how long it goes on and how often it looks, but not what it computes."""


def train(config: RLConfig, run: Run) -> None:
    """Train an agent, and test its last weights on the levels that it was trained on and on those it has never seen."""
    set_deterministic(config.train.deterministic)
    splits, games = level_splits(config), config.games
    with contextlib.closing(RLTrainer(config, run.device, run.processes)) as trainer:
        run.steps(trainer, loop_options(config))

        def test() -> dict[str, Any]:
            levels = levels_to_test(config, splits)
            return to_json(evaluate(trainer.model, games.names, games.distribution, levels, console=run.console))

        run.finish(
            trainer.model,
            test,
            memory=config.agent.memory,
            frames=config.iterations * config.schedule.frames_per_iteration,
            num_envs=games.num_envs,
        )


def loop_options(config: RLConfig) -> LoopOptions:
    """When the loop of a recipe does what; its steps are iterations."""
    train = config.train
    return LoopOptions(
        total_steps=config.iterations,
        log_every=train.log_every,
        validate_every=train.checkpoint_every,
        checkpoint_every=train.checkpoint_every,
        score=None,
        items_per_step=config.schedule.frames_per_iteration,
        item="frames",
        shown=("train/score", *(f"train/return/{name}" for name in config.games.names[:3])),
    )


def level_splits(config: RLConfig) -> LevelSplits:
    """The levels of a recipe: its own to train on, the paper's to test on.

    Raises:
        InputError: if they overlap.
    """
    train = LevelRange(config.games.first_level, config.games.num_levels)
    return dataclasses.replace(splits_of(config.games.distribution), train=train)


def levels_to_test(config: RLConfig, splits: LevelSplits) -> dict[str, LevelRange]:
    """What is played at the end: the training levels and the test splits, as many levels of each as the recipe says."""
    most = config.train.test_levels
    return {
        name: LevelRange(levels.start, min(levels.count, most))
        for name, levels in splits.named().items()
        if name != "validation"
    }


def to_json(tested: Mapping[str, SplitResult]) -> dict[str, Any]:
    """Results as JSON values."""
    return {
        name: {**dataclasses.asdict(result), "levels": list(result.levels), "means": result.means}
        for name, result in tested.items()
    }
