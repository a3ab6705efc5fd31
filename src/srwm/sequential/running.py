"""Training and testing a recipe from beginning to end: data, trainer, loop, result."""

import dataclasses
import time
from datetime import date
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from srwm.fewshot.running import training_seconds
from srwm.fewshot.saved import load_weights
from srwm.runs.checkpoint import best_checkpoint
from srwm.runs.config import to_json
from srwm.runs.devices import choose_device, hardware, set_deterministic
from srwm.runs.loop import LoopOptions, LoopResult, run_loop
from srwm.runs.processes import run_on_main, start_processes, stop_processes
from srwm.runs.run_folder import RunFolder

from .bank import Bank, load_bank
from .config import SequentialConfig
from .evaluation import Evaluation, evaluate
from .saved import KIND
from .trainer import SequentialTrainer

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
    config: SequentialConfig,
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
        training, validation = load_bank(config.stream, "train", data), load_bank(config.stream, "validation", data)
        trainer = SequentialTrainer(config, training, validation, place, processes)
        folder = run_on_main(processes, lambda: open_run(path, config, resume)) or RunFolder.open(path, kind=KIND)
        result = run_loop(
            trainer,
            folder,
            loop_options(config, tensorboard),
            processes=processes,
            console=console,
            meta={"hardware": hardware(place)},
        )
        if result.interrupted or not processes.is_main:
            return result, None
        return result, _finish(
            config, folder, trainer, result, load_bank(config.stream, "test", data) if test else None
        )
    finally:
        stop_processes()


def open_run(path: Path, config: SequentialConfig, resume: bool) -> RunFolder:
    """Make the folder of a run, or open the one that is to go on."""
    if resume and (path / "config.json").exists():
        return RunFolder.resume(path, to_json(config), kind=KIND, may_change=MAY_CHANGE, config_type=SequentialConfig)
    return RunFolder.create(path, to_json(config), kind=KIND)


def loop_options(config: SequentialConfig, tensorboard: bool = False) -> LoopOptions:
    """When the loop of a recipe does what."""
    train = config.train
    return LoopOptions(
        total_steps=train.total_steps,
        log_every=train.log_every,
        validate_every=train.validate_every,
        checkpoint_every=train.checkpoint_every,
        stop_at=train.stop_at,
        items_per_step=train.batch_size * config.stream.length,
        item="images",
        tensorboard=tensorboard,
    )


def _finish(
    config: SequentialConfig, folder: RunFolder, trainer: SequentialTrainer, result: LoopResult, images: Bank | None
) -> dict[str, Any]:
    """Test the best checkpoint and write the result."""
    best = best_checkpoint(folder.checkpoints_path)
    if best is not None:
        load_weights(trainer.model, best.groups["weights"], best.path)
    tested: Evaluation | None = None
    if images is not None:
        train = config.train
        bank = images.to(trainer.device)
        tested = evaluate(trainer.model, bank, sets=train.test_sets, streams=train.test_episodes)
    content = {
        "format": 1,
        "kind": KIND,
        "recipe": config.recipe,
        "memory": config.model.memory,
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
