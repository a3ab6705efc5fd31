"""A run: a recipe trained in a folder, from the choice of a device to `result.json`; experiments train in it."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Protocol, TypedDict, Unpack, runtime_checkable

import torch
from rich.console import Console
from torch import nn

from srwm.errors import InputError

from .atomic import failures_as_sentences
from .checkpoint import best_checkpoint
from .config import to_json
from .devices import choose_device, full_memory_as_sentence, hardware
from .loop import Checkpointed, LoopOptions, LoopResult, Trainer, TrainingLoop, check_steps
from .metrics import read_metrics
from .model_files import load_weights
from .processes import Processes, run_on_main, start_processes, stop_processes
from .run_folder import RunFolder

__all__ = ["Run", "RunConfig", "RunOptions", "open_run", "start_run", "training_seconds"]

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


class RunOptions(TypedDict, total=False):
    """How a run is done; all may be left out."""

    resume: bool
    """Go on with the run in the folder, if there is one."""
    device: str
    """Where to compute: "auto", "cpu", "cuda" or "cuda:N"."""
    data: Path | None
    """The data folder; None for the usual one."""
    test: bool
    """Whether to test at the end; true if it is left out."""
    tensorboard: bool
    """Also write the numbers for TensorBoard."""
    console: Console | None
    """Where progress is shown."""


class Run:
    """A training of a recipe in a folder: where it computes, its loop, and the result at its end; see `start_run`.

    Args:
        config: the recipe.
        path: the folder of the run.
        processes: this process among those of a `torchrun`.
        stack: what ends with the run is left to it.
        experiment: name of the experiment that it belongs to.
        may_change: dotted keys of the configuration that may differ when a run is resumed.
        options: how it is done.

    Attributes:
        device: where to compute.
        content: the content of `result.json`, once it is written.
    """

    def __init__(
        self,
        config: RunConfig,
        path: Path,
        processes: Processes,
        stack: contextlib.ExitStack,
        *,
        experiment: str,
        may_change: Sequence[str],
        options: RunOptions,
    ) -> None:
        self.path, self.processes = path, processes
        self.data, self.test = options.get("data"), options.get("test", True)
        self.tensorboard = options.get("tensorboard", False)
        self.console = options.get("console") or Console(stderr=True)
        self.device = torch.device(processes.device)
        self.content: dict[str, Any] | None = None
        self._config, self._experiment, self._may_change = config, experiment, may_change
        self._resume, self._stack = options.get("resume", False), stack
        self._loop: TrainingLoop | None = None

    def loop(self, state: Checkpointed, options: LoopOptions, *, meta: Mapping[str, Any] | None = None) -> TrainingLoop:
        """Make the folder of the run, or open the one that is to go on, and give the loop over its steps.

        What cannot be trained leaves no folder, if all that can be refused was refused before. From the first word that
        is written to the last one, nobody else may write here.

        Args:
            state: what checkpoints are made of; it is put where the newest one left it.
            options: when the loop does what.
            meta: what every checkpoint says about itself besides its score, the configuration and the hardware.

        Raises:
            InputError: if the folder does not fit.
        """

        def check(folder: RunFolder) -> None:
            check_steps(folder, options)

        def make_or_open() -> RunFolder:
            return open_run(
                self.path,
                self._config,
                kind=self._experiment,
                may_change=self._may_change,
                resume=self._resume,
                check=check,
                hold=self._stack,
            )

        self._folder = run_on_main(self.processes, make_or_open) or RunFolder.open(self.path, kind=self._experiment)
        self._loop = TrainingLoop(
            state,
            self._folder,
            dataclasses.replace(options, tensorboard=self.tensorboard),
            processes=self.processes,
            console=self.console,
            meta={**(meta or {}), "hardware": hardware(self.device)},
        )
        return self._stack.enter_context(self._loop)

    @property
    def result(self) -> LoopResult:
        """How the loop ended."""
        assert self._loop is not None
        assert self._loop.result is not None
        return self._loop.result

    @property
    def is_finished(self) -> bool:
        """Whether the run has come to its end, and this process is the main one: the result is to be written."""
        return not self.result.interrupted and self.processes.is_main

    def steps(self, trainer: Trainer, options: LoopOptions, *, meta: Mapping[str, Any] | None = None) -> None:
        """Do all steps of a training, with the metrics, validations and checkpoints that are due; see `loop`."""
        loop = self.loop(trainer, options, meta=meta)
        for step in loop:  # from the newest checkpoint to the end, or to Ctrl-C
            trainer.train_step(step)
            if loop.is_due:
                numbers = loop.measure(trainer.metrics)
                if loop.is_validation_due:
                    numbers |= trainer.validate()
                loop.record(numbers, trainer.notice(step + 1, numbers))

    def finish(self, model: nn.Module, test: Callable[[], Any], **own: Any) -> None:
        """Test the best weights of a run that has come to its end, and write its result; see `write_result`.

        Args:
            model: the network, to which the weights of the best checkpoint are given.
            test: gives what was measured, as a dataclass or as JSON values; not called where no test is wanted.
            own: what the result says besides.
        """
        if not self.is_finished:
            return
        self.load_best(model)
        tested = test() if self.test else None
        if tested is not None and not isinstance(tested, Mapping):
            tested = dataclasses.asdict(tested)
        self.write_result(model, **own, test=tested)

    def load_best(self, model: nn.Module) -> None:
        """Put the weights of the best checkpoint into a model, or of the newest one where there was no validation."""
        self._best = best_checkpoint(self._folder.checkpoints_path)
        if self._best is not None:
            load_weights(model, self._best.groups["weights"], self._best.path)

    def write_result(self, model: nn.Module, **own: Any) -> None:
        """Write `result.json`, which says how the run ended; `load_best` comes first.

        Args:
            model: the network.
            own: what it says beside the fields of every run, as JSON values: "test", None or what a test measured, in
                which "accuracy" is the number that sweeps compare, or else "test_score" beside it.
        """
        self.content = {
            "format": RESULT_FORMAT,
            "kind": self._experiment,
            "recipe": self._config.recipe,
            "seed": self._config.seed,
            "step": self.result.step,
            # Of the weights that are tested: the checkpoint with the best score may be broken.
            "score": None if self._best is None else self._best.meta["score"],
            "score_step": None if self._best is None else self._best.step,
            "parameters": sum(p.numel() for p in model.parameters()),
            **own,
            "seconds": round(training_seconds(self._folder), 1),
            "date": date.fromtimestamp(time.time()).isoformat(),
            "hardware": hardware(self.device),
        }
        self._folder.write_result(self.content)


@contextlib.contextmanager
def start_run(
    config: RunConfig, path: Path, *, experiment: str, may_change: Sequence[str] = (), **options: Unpack[RunOptions]
) -> Iterator[Run]:
    """Join the other processes of a `torchrun`, choose the device, and hold the run while `with` does.

    Under `torchrun` every process calls this alike. For the arguments see `Run` and `RunOptions`.

    Raises:
        InputError: if the device is not there.
        RunError: if something fails on the way.
    """
    processes = start_processes(str(choose_device(options.get("device", "auto"))))
    with contextlib.ExitStack() as stack:
        stack.callback(stop_processes)
        stack.enter_context(full_memory_as_sentence(lambda: f"{processes.device} ran out of memory"))
        yield Run(config, path, processes, stack, experiment=experiment, may_change=may_change, options=options)


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
