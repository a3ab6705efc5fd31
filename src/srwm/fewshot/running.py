"""Training and testing a recipe from beginning to end: data, trainer, loop, result."""

import dataclasses
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from srwm.data import ImageSet, load_images
from srwm.runs.checkpoint import best_checkpoint
from srwm.runs.config import to_json
from srwm.runs.devices import choose_device, hardware, set_deterministic
from srwm.runs.loop import LoopOptions, LoopResult, run_loop
from srwm.runs.processes import run_on_main, start_processes, stop_processes
from srwm.runs.run_folder import RunFolder

from .config import FewShotConfig, TaskConfig
from .evaluation import Evaluation, evaluate
from .saved import KIND, load_weights
from .trainer import FewShotTrainer

MAY_CHANGE = (
    "train.total_steps",
    "train.stop_at",
    "train.log_every",
    "train.checkpoint_every",
    "train.test_sets",
    "train.test_episodes",
)
"""What may differ when a run is resumed: how long it goes on and how often it looks, but not what it computes."""


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
    console = console or Console(stderr=True)
    place = choose_device(device)
    processes = start_processes(str(place))
    try:
        place = torch.device(processes.device)
        set_deterministic(config.train.deterministic)
        load = image_loader(config.task, data)
        training, validation = load("train"), load("validation")
        trainer = FewShotTrainer(config, training, validation, place, processes)
        folder = run_on_main(processes, lambda: open_run(path, config, resume)) or RunFolder.open(path, kind=KIND)
        result = run_loop(
            trainer,
            folder,
            loop_options(config, tensorboard),
            processes=processes,
            console=console,
            meta={"image_shape": list(training.images.shape[1:]), "hardware": hardware(place)},
        )
        if result.interrupted or not processes.is_main:
            return result, None
        return result, _finish(config, folder, trainer, result, load if test else None)
    finally:
        stop_processes()


def open_run(path: Path, config: FewShotConfig, resume: bool) -> RunFolder:
    """Make the folder of a run, or open the one that is to go on."""
    if resume and (path / "config.json").exists():
        return RunFolder.resume(path, to_json(config), kind=KIND, may_change=MAY_CHANGE, config_type=FewShotConfig)
    return RunFolder.create(path, to_json(config), kind=KIND)


def loop_options(config: FewShotConfig, tensorboard: bool = False) -> LoopOptions:
    """When the loop of a recipe does what."""
    task, train = config.task, config.train
    return LoopOptions(
        total_steps=train.total_steps,
        log_every=train.log_every,
        validate_every=train.validate_every,
        checkpoint_every=train.checkpoint_every,
        stop_at=train.stop_at,
        items_per_step=train.batch_size * (task.ways * task.shots + task.queries),
        item="images",
        tensorboard=tensorboard,
    )


def image_loader(task: TaskConfig, data: Path | None) -> Callable[[Any], ImageSet]:
    """A function from the name of a split to its images, of the size that the task asks for."""
    return lambda split: load_images(
        task.source, split, folder=data, image_size=task.image_size, channels=task.channels
    )


def _finish(
    config: FewShotConfig,
    folder: RunFolder,
    trainer: FewShotTrainer,
    result: LoopResult,
    load: Callable[[Any], ImageSet] | None,
) -> dict[str, Any]:
    """Test the best checkpoint and write the result."""
    best = best_checkpoint(folder.checkpoints_path)
    if best is not None:
        load_weights(trainer.model, best.groups["weights"], best.path)
    tested: Evaluation | None = None
    if load is not None:
        train = config.train
        images = load("test").to(trainer.device)
        tested = evaluate(trainer.model, images, config.task, sets=train.test_sets, episodes=train.test_episodes)
    content = {
        "format": 1,
        "kind": KIND,
        "recipe": config.recipe,
        "seed": config.seed,
        "step": result.step,
        "score": result.score,
        "score_step": result.score_step,
        "parameters": sum(p.numel() for p in trainer.model.parameters()),
        "test": None if tested is None else dataclasses.asdict(tested),
        "seconds": round(training_seconds(folder), 1),
        "date": date.fromtimestamp(time.time()).isoformat(),
        "hardware": hardware(trainer.device),
    }
    folder.write_result(content)
    return content


def training_seconds(folder: RunFolder) -> float:
    """Seconds that all parts of a run took together."""
    from srwm.runs.metrics import read_metrics

    total = last = 0.0
    for record in read_metrics(folder.timing_path):
        seconds = float(record["seconds"])
        total, last = (total + last, seconds) if seconds < last else (total, seconds)
    return total + last
