"""Training and testing a recipe from beginning to end: trainer, loop, result."""

import dataclasses
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from srwm.runs.loop import LoopOptions, LoopResult
from srwm.runs.processes import Processes
from srwm.runs.training import train_in_folder

from .config import LanguagesConfig
from .evaluation import evaluate
from .loading import KIND
from .registry import find_task
from .trainer import LanguagesTrainer

MAY_CHANGE = ("train.total_steps", "train.log_every", "train.checkpoint_every", "train.test_sequences")
"""What may differ when a run is resumed: how long it goes on and how often it looks, but not what it computes."""


def train_run(
    config: LanguagesConfig,
    path: Path,
    *,
    resume: bool = False,
    device: str = "auto",
    data: Path | None = None,
    test: bool = True,
    tensorboard: bool = False,
    console: Console | None = None,
) -> tuple[LoopResult, dict[str, Any] | None]:
    """Train a recipe in a run folder, and test its last weights.

    Args:
        config: the recipe.
        path: the folder of the run.
        resume: go on with the run in the folder, if there is one.
        device: "auto", "cpu", "cuda" or "cuda:N".
        data: the data folder, which no task reads: sequences are drawn.
        test: whether to test at the end.
        tensorboard: also write the numbers for TensorBoard.
        console: where progress is shown.

    Returns:
        How the loop ended, and the result that stands in `result.json`; None for a run that was interrupted.

    Raises:
        InputError: if the task, the folder or the device do not fit.
        RunError: if something fails on the way.
    """

    def make_trainer(place: torch.device, processes: Processes) -> LanguagesTrainer:
        return LanguagesTrainer(config, place, processes)

    def finish(trainer: LanguagesTrainer) -> dict[str, Any]:
        about: dict[str, Any] = {"memory": config.model.memory, "task": config.task.name, "test": None}
        if test:
            tested = evaluate(
                trainer.model,
                find_task(config.task, test=True),
                config.task.test_lengths,
                sequences=config.train.test_sequences,
                device=trainer.device,
            )
            about["test"] = dataclasses.asdict(tested)
        return about

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


def loop_options(config: LanguagesConfig, tensorboard: bool = False) -> LoopOptions:
    """When the loop of a recipe does what."""
    train = config.train
    return LoopOptions(
        total_steps=train.total_steps,
        log_every=train.log_every,
        checkpoint_every=train.checkpoint_every,
        score=None,
        items_per_step=train.batch_size,
        item="sequences",
        shown=("train/loss", "train/accuracy", "train/sequence_accuracy"),
        tensorboard=tensorboard,
    )
