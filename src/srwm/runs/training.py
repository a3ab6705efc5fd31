"""Training a recipe in a run folder, from the choice of a device to `result.json`; a kind of run adds its own part."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from rich.console import Console
from torch import nn

from srwm.errors import InputError

from .atomic import failures_as_sentences
from .checkpoint import best_checkpoint
from .config import to_json
from .devices import choose_device, full_memory_as_sentence, hardware, set_deterministic
from .loop import LoopOptions, LoopResult, Trainer, check_steps, run_loop
from .metrics import read_metrics
from .model_files import load_weights
from .processes import Processes, run_on_main, start_processes, stop_processes
from .run_folder import RunFolder

__all__ = ["ModelTrainer", "RunConfig", "open_run", "train_in_folder", "training_seconds"]

RESULT_FORMAT = 1
"""Number of the format of `result.json`."""


@runtime_checkable
class RunConfig(Protocol):
    """What every recipe says of itself; a frozen dataclass (see `srwm.runs.config`)."""

    @property
    def recipe(self) -> str:
        """Name of the recipe that it came from."""

    @property
    def seed(self) -> int:
        """Seed of everything that is random."""


@runtime_checkable
class ModelTrainer(Trainer, Protocol):
    """A trainer of one network, whose weights are the group "weights" of its checkpoints."""

    @property
    def model(self) -> nn.Module:
        """The network."""


T = TypeVar("T", bound=ModelTrainer)


def train_in_folder(
    config: RunConfig,
    path: Path,
    *,
    kind: str,
    options: LoopOptions,
    make_trainer: Callable[[torch.device, Processes], T],
    finish: Callable[[T], Mapping[str, Any]],
    meta: Callable[[T], Mapping[str, Any]] | None = None,
    may_change: Sequence[str] = (),
    deterministic: bool = True,
    resume: bool = False,
    device: str = "auto",
    console: Console | None = None,
) -> tuple[LoopResult, dict[str, Any] | None]:
    """Train a recipe in a run folder; at the end, write what it came to.

    Under `torchrun` every process calls this alike. What cannot be trained leaves no folder: the trainer is made first.

    Args:
        config: the recipe.
        path: the folder of the run.
        kind: what is trained, for example "few-shot".
        options: when the loop does what.
        make_trainer: loads the data and makes the trainer, given the device and this process among its peers.
        finish: called in the main process when the run has ended, with the weights of the best checkpoint in
            `trainer.model`; gives what `result.json` says beside the fields of every kind: "test", None or what a test
            measured, in which "accuracy" is the number that sweeps compare, or else "test_score" beside it.
        meta: gives what every checkpoint says about itself besides its score, the configuration and the hardware.
        may_change: dotted keys of the configuration that may differ when a run is resumed.
        deterministic: whether training is bitwise reproducible on a GPU, too.
        resume: go on with the run in the folder, if there is one.
        device: "auto", "cpu", "cuda" or "cuda:N".
        console: where progress is shown; None for the standard error stream.

    Returns:
        How the loop ended, and the content of `result.json`; None for a run that was interrupted, and in processes
        other than the main one.

    Raises:
        InputError: if the data, the folder or the device do not fit.
        RunError: if something fails on the way.
    """
    processes = start_processes(str(choose_device(device)))
    with contextlib.ExitStack() as stack:
        stack.callback(stop_processes)
        stack.enter_context(full_memory_as_sentence(lambda: f"{processes.device} ran out of memory"))
        place = torch.device(processes.device)
        set_deterministic(deterministic)
        trainer = make_trainer(place, processes)

        def check(folder: RunFolder) -> None:
            check_steps(folder, options)

        # From before the first word is written to after the last one: nobody else may write here meanwhile.
        folder = run_on_main(
            processes,
            lambda: open_run(path, config, kind=kind, may_change=may_change, resume=resume, check=check, hold=stack),
        ) or RunFolder.open(path, kind=kind)
        result = run_loop(
            trainer,
            folder,
            options,
            processes=processes,
            console=console or Console(stderr=True),
            meta={**(meta(trainer) if meta else {}), "hardware": hardware(place)},
        )
        if result.interrupted or not processes.is_main:
            return result, None
        best = best_checkpoint(folder.checkpoints_path)
        if best is not None:
            load_weights(trainer.model, best.groups["weights"], best.path)
        content = {
            "format": RESULT_FORMAT,
            "kind": kind,
            "recipe": config.recipe,
            "seed": config.seed,
            "step": result.step,
            # Of the weights that are tested: the checkpoint with the best score may be broken.
            "score": None if best is None else best.meta["score"],
            "score_step": None if best is None else best.step,
            "parameters": sum(p.numel() for p in trainer.model.parameters()),
            **finish(trainer),
            "seconds": round(training_seconds(folder), 1),
            "date": date.fromtimestamp(time.time()).isoformat(),
            "hardware": hardware(place),
        }
        folder.write_result(content)
        return result, content


def open_run(
    path: Path,
    config: RunConfig,
    *,
    kind: str,
    may_change: Sequence[str] = (),
    resume: bool = False,
    check: Callable[[RunFolder], None] | None = None,
    hold: contextlib.ExitStack | None = None,
) -> RunFolder:
    """Make the folder of a run, or open the one that is to go on; see `RunFolder.create` and `RunFolder.resume`."""
    values = to_json(config)
    with failures_as_sentences(path):
        goes_on = resume and (path / "config.json").exists()
    if not goes_on:
        return RunFolder.create(path, values, kind=kind, hold=hold)
    return RunFolder.resume(
        path, values, kind=kind, may_change=may_change, config_type=type(config), check=check, hold=hold
    )


def training_seconds(folder: RunFolder) -> float:
    """Seconds that all parts of a run took together.

    Raises:
        InputError: if a line of `timing.jsonl` is broken or says no seconds.
    """
    total = last = 0.0
    for number, record in enumerate(read_metrics(folder.timing_path), start=1):
        seconds = record.get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise InputError(f"{folder.timing_path}, line {number} says no seconds; remove the line and resume the run")
        seconds = float(seconds)
        total, last = (total + last, seconds) if seconds < last else (total, seconds)
    return total + last
