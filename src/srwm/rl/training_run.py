"""Training and testing an agent from beginning to end: environments, trainer, loop, test levels, result."""

import dataclasses
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from srwm.runs.loop import LoopOptions, LoopResult
from srwm.runs.processes import Processes
from srwm.runs.training import train_in_folder

from .config import RLConfig
from .evaluation import SplitResult, evaluate
from .loading import KIND
from .procgen import LevelRange, LevelSplits, splits_of
from .trainer import RLTrainer

MAY_CHANGE = (
    "train.total_frames",
    "train.threads",
    "train.executor",
    "train.ray_address",
    "train.log_every",
    "train.test_levels",
)
"""What may differ when a run is resumed: how long it goes on and how often it looks, but not what it computes."""


def train_run(
    config: RLConfig,
    path: Path,
    *,
    resume: bool = False,
    device: str = "auto",
    data: Path | None = None,
    test: bool = True,
    tensorboard: bool = False,
    console: Console | None = None,
) -> tuple[LoopResult, dict[str, Any] | None]:
    """Train an agent in a run folder, and test it.

    Args:
        config: the recipe.
        path: the folder of the run.
        resume: go on with the run in the folder, if there is one.
        device: "auto", "cpu", "cuda" or "cuda:N".
        data: takes no part; the games make their levels themselves.
        test: whether to test at the end.
        tensorboard: also write the numbers for TensorBoard.
        console: where progress is shown.

    Returns:
        How the loop ended, and the result that stands in `result.json`; None for a run that was interrupted.

    Raises:
        InputError: if the games, the folder or the device do not fit, or ProcGen is not there.
        RunError: if something fails on the way.
    """
    splits = level_splits(config)
    console = console or Console(stderr=True)

    def finish(trainer: RLTrainer) -> dict[str, Any]:
        about: dict[str, Any] = {
            "memory": config.agent.memory,
            "frames": config.iterations * config.schedule.frames_per_iteration,
            "num_envs": config.games.num_envs,
            "test": None,
        }
        if test:
            tested = evaluate(
                trainer.model,
                config.games.names,
                config.games.distribution,
                levels_to_test(config, splits),
                console=console,
            )
            about["test"] = to_json(tested)
        return about

    with ExitStack() as stack:

        def make_trainer(place: torch.device, processes: Processes) -> RLTrainer:
            trainer = RLTrainer(config, place, processes)
            stack.callback(trainer.close)
            return trainer

        return train_in_folder(
            config,
            path,
            kind=KIND,
            options=loop_options(config, tensorboard),
            make_trainer=make_trainer,
            finish=finish,
            may_change=MAY_CHANGE,
            deterministic=config.train.deterministic,
            resume=resume,
            device=device,
            console=console,
        )


def loop_options(config: RLConfig, tensorboard: bool = False) -> LoopOptions:
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
        tensorboard=tensorboard,
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
