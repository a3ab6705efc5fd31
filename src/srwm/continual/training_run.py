"""Training and testing a recipe from beginning to end: data, trainer, loop, result."""

import dataclasses
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from srwm.runs.loop import LoopOptions, LoopResult
from srwm.runs.processes import Processes
from srwm.runs.training import train_in_folder
from srwm.supervised.loop_options import MAY_CHANGE, options_of

from .bank import load_bank
from .config import ContinualConfig
from .evaluation import evaluate_orders
from .loading import KIND
from .trainer import ContinualTrainer


def train_run(
    config: ContinualConfig,
    path: Path,
    *,
    resume: bool = False,
    device: str = "auto",
    data: Path | None = None,
    test: bool = True,
    tensorboard: bool = False,
    console: Console | None = None,
) -> tuple[LoopResult, dict[str, Any] | None]:
    """Train a recipe in a run folder, and test its best checkpoint.

    Args:
        config: the recipe.
        path: the folder of the run.
        resume: go on with the run in the folder, if there is one.
        device: "auto", "cpu", "cuda" or "cuda:N".
        data: the data folder.
        test: whether to test at the end.
        tensorboard: also write the numbers for TensorBoard.
        console: where progress is shown.

    Returns:
        How the loop ended, and the result that stands in `result.json`; None for a run that was interrupted.

    Raises:
        InputError: if the data, the folder or the device do not fit.
        RunError: if something fails on the way.
    """

    def make_trainer(place: torch.device, processes: Processes) -> ContinualTrainer:
        training, validation = load_bank(config.tasks, "train", data), load_bank(config.tasks, "validation", data)
        return ContinualTrainer(config, training, validation, place, processes)

    def finish(trainer: ContinualTrainer) -> dict[str, Any]:
        about: dict[str, Any] = {"memory": config.model.memory, "test": None}
        if test:
            bank = load_bank(config.tasks, "test", data).to(trainer.device)
            train = config.train
            tested = evaluate_orders(
                trainer.model, bank, config.tasks, sets=train.test_sets, sequences=train.test_episodes
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


def loop_options(config: ContinualConfig, tensorboard: bool = False) -> LoopOptions:
    """When the loop of a recipe does what."""
    return options_of(config.train, config.train.batch_size * config.tasks.images, tensorboard)
