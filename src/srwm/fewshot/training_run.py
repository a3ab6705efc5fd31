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

from .config import FewShotConfig
from .evaluation import evaluate
from .images import image_loader
from .loading import KIND
from .trainer import FewShotTrainer


def train_run(
    config: FewShotConfig,
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
    load = image_loader(config.task, data)

    def make_trainer(place: torch.device, processes: Processes) -> FewShotTrainer:
        return FewShotTrainer(config, load("train"), load("validation"), place, processes)

    def finish(trainer: FewShotTrainer) -> dict[str, Any]:
        if not test:
            return {"test": None}
        train, images = config.train, load("test").to(trainer.device)
        tested = evaluate(trainer.model, images, config.task, sets=train.test_sets, episodes=train.test_episodes)
        return {"test": dataclasses.asdict(tested)}

    return train_in_folder(
        config,
        path,
        kind=KIND,
        options=loop_options(config, tensorboard),
        make_trainer=make_trainer,
        finish=finish,
        meta=lambda trainer: {"image_shape": list(trainer.model.image_shape)},
        may_change=MAY_CHANGE,
        deterministic=config.train.deterministic,
        resume=resume,
        device=device,
        console=console,
    )


def loop_options(config: FewShotConfig, tensorboard: bool = False) -> LoopOptions:
    """When the loop of a recipe does what."""
    return options_of(config.train, config.train.batch_size * config.episode_images, tensorboard)
