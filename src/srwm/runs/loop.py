"""The training loop: steps, logging, validation, checkpoints, resuming and stopping, for any kind of training.

A run is a pure function of its configuration. Killed at any moment and started again, it goes on from the newest whole
checkpoint and ends with the same weights and the same `metrics.jsonl`, byte for byte.
"""

import contextlib
import functools
import logging
import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from torch import Tensor

from srwm.errors import InputError

from ._contract import LoopOptions, LoopResult, Trainer
from ._progress import Display, Status
from ._tensorboard import Scalars
from .checkpoint import Checkpoint, checkpoint_folders, latest_checkpoint, prune, save_checkpoint
from .devices import full_memory_as_sentence, rng_tensors
from .gradient_watch import NonFiniteError
from .metrics import MetricsLog, cut_metrics, read_metrics
from .processes import Processes, any_true, broadcast_number, gather_tensors, run_on_main
from .run_folder import RunFolder
from .stop_signal import StopSignal
from .suggestions import did_you_mean

__all__ = ["LoopOptions", "LoopResult", "Trainer", "check_steps", "run_loop"]

_RNG_OF = "rng-"
"""With a process's number behind it, the group of its random states; that of the main process is "rng"."""

_log = logging.getLogger(__name__)


def run_loop(
    trainer: Trainer,
    folder: RunFolder,
    options: LoopOptions,
    *,
    processes: Processes | None = None,
    console: Console | None = None,
    show_progress: bool = True,
    meta: Mapping[str, Any] | None = None,
) -> LoopResult:
    """Train from the newest checkpoint in the folder, or from the start if there is none, to the end.

    Ctrl-C and SIGTERM end it after the step at hand, with everything saved; a second Ctrl-C ends it at once. With
    several processes, all stop together at the next log line.

    Args:
        trainer: what is trained.
        folder: where the run lies; no other process may train in it.
        options: when the loop does what.
        processes: this process among its peers; None for one alone.
        console: where progress is shown; None for the standard error stream.
        show_progress: whether it is shown.
        meta: what every checkpoint says about itself besides its score and the configuration, as JSON values.

    Raises:
        NonFiniteError: if a loss or gradient is not finite; `metrics.jsonl` then ends with an event that says so.
        InputError: if another process trains in the folder, no checkpoint in it is whole, or the score is unknown.
        RunError: if the disk or the memory of the device is full.
    """
    processes = processes or Processes()
    console = console or Console(stderr=True)
    with contextlib.ExitStack() as stack:
        run_on_main(processes, lambda: None if folder.is_held else stack.enter_context(folder.lock()))
        checkpoint = _starting_point(folder, options)
        step = 0 if checkpoint is None else checkpoint.step
        if checkpoint is not None:
            _load(trainer, checkpoint, processes)
        run_on_main(processes, lambda: _clear_up(folder, step, options))
        stop = stack.enter_context(StopSignal(at_once=processes.count == 1))
        loop = _Loop(trainer, folder, options, processes, stop, checkpoint, meta or {})
        # The others have read the old records before the main process adds new ones.
        run_on_main(processes, lambda: loop.open_files(stack))
        if processes.is_main and show_progress:
            loop.display = stack.enter_context(Display(loop.status, console, lambda: stop.requested))
        with full_memory_as_sentence(lambda: f"{processes.device} ran out of memory at step {loop.status.step}"):
            return loop.run()


def check_steps(folder: RunFolder, options: LoopOptions) -> None:
    """Refuse to go on with a run that has more steps behind it than it is to have in the end.

    Raises:
        InputError: if it has.
    """
    folders = checkpoint_folders(folder.checkpoints_path)
    # The names say the steps; only where one is beyond does it matter whether its checkpoint is whole.
    if folders and int(folders[-1].name.removeprefix("step-")) > options.total_steps:
        _starting_point(folder, options)


def _starting_point(folder: RunFolder, options: LoopOptions) -> Checkpoint | None:
    checkpoint = latest_checkpoint(folder.checkpoints_path)
    if checkpoint is None and checkpoint_folders(folder.checkpoints_path):
        raise InputError(f"no checkpoint in {folder.checkpoints_path} is whole; remove that folder to start again")
    if checkpoint is not None and checkpoint.step > options.total_steps:
        raise InputError(
            f"{folder.path} has {checkpoint.step:,} steps behind it, and total_steps is {options.total_steps:,}; "
            f"expected at least {checkpoint.step:,}: go on for longer, or train in another folder"
        )
    return checkpoint


def _clear_up(folder: RunFolder, step: int, options: LoopOptions) -> None:
    """Take away what the process before wrote after its last checkpoint, and what it was killed in writing."""
    cut_metrics(folder.metrics_path, step)
    folder.remove_temporary()
    prune(folder.checkpoints_path, options.keep_checkpoints)


def _load(trainer: Trainer, checkpoint: Checkpoint, processes: Processes) -> None:
    """Put a training where a checkpoint left it."""
    try:
        trainer.load_tensors(_own_groups(checkpoint, processes))
    except InputError as error:
        raise InputError(f"{checkpoint.path} cannot be gone on with: {error}") from error


def _own_groups(checkpoint: Checkpoint, processes: Processes) -> dict[str, dict[str, Tensor]]:
    """Give the groups of a checkpoint with the random states of this process."""
    groups = {name: tensors for name, tensors in checkpoint.groups.items() if not name.startswith(_RNG_OF)}
    saved = len(checkpoint.groups) - len(groups) + 1
    if processes.count != saved:
        text = "%s was saved by %d processes and is read by %d; random numbers such as dropout's will differ"
        _log.warning(text, checkpoint.path, saved, processes.count)
    if not processes.is_main and "rng" in groups:
        # A process that was not there when it was saved keeps the states it has begun with.
        groups["rng"] = checkpoint.groups.get(f"{_RNG_OF}{processes.rank}", rng_tensors())
    return groups


class _Loop:
    """One part of a run: from its start or a checkpoint to its end or an interruption."""

    def __init__(
        self,
        trainer: Trainer,
        folder: RunFolder,
        options: LoopOptions,
        processes: Processes,
        stop: StopSignal,
        checkpoint: Checkpoint | None,
        meta: Mapping[str, Any],
    ) -> None:
        self.trainer, self.folder, self.options, self.processes, self.stop = trainer, folder, options, processes, stop
        self.meta = {"kind": folder.kind, "config": folder.config, **meta}
        self.status = Status(checkpoint.step if checkpoint else 0, options.total_steps, options.item)
        self.checkpoint = checkpoint.path if checkpoint else None
        self.display: Display | None = None
        self.scalars: Scalars | None = None
        self.best_score: float | None = None
        self.best_step: int | None = None
        self.notices: set[str] = set()
        for record in read_metrics(folder.metrics_path) if folder.metrics_path.exists() else []:
            if record.get("event") == "notice":
                self.notices.add(str(record.get("text")))
            elif options.score is not None and isinstance(record.get(options.score), float):
                self._note_score(record[options.score], record["step"])

    def open_files(self, stack: contextlib.ExitStack) -> None:
        """Open what the main process writes."""
        self.metrics_log = stack.enter_context(MetricsLog(self.folder.metrics_path))
        self.timing_log = stack.enter_context(MetricsLog(self.folder.timing_path))
        if self.options.tensorboard:
            self.scalars = Scalars(self.folder.path / "tensorboard", self.status.step)
            stack.callback(self.scalars.close)
        self._time({"event": "resumed" if self.checkpoint else "started"})

    def run(self) -> LoopResult:
        """Go on to the end."""
        status, total_steps = self.status, self.options.total_steps
        interrupted, reached = False, self._has_reached_score()
        while status.step < total_steps and not interrupted and not reached:
            before, started = status.step, status.seconds()
            self._train()
            if not self._is_stop():
                self._save_between_logs()
                interrupted = True
                continue
            numbers = self._metrics()
            status.rate = (status.step - before) * self.options.items_per_step / max(status.seconds() - started, 1e-9)
            is_better, score = self._validate(numbers)
            reached = self._has_reached_score()
            interrupted = any_true(self.stop.requested, self.processes) and status.step < total_steps and not reached
            must_save = is_better or reached or interrupted or self._is_due(self.options.checkpoint_every)
            groups = self._groups() if must_save else None
            run_on_main(self.processes, functools.partial(self._write, numbers, score, groups))
        if interrupted and self.processes.is_main:
            self._time({"event": "interrupted"})
        return LoopResult(
            step=status.step,
            score=self.best_score,
            score_step=self.best_step,
            interrupted=interrupted,
            stopped_early=reached,
            seconds=status.seconds(),
            checkpoint=self.checkpoint,
        )

    def _train(self) -> None:
        """Do steps until something else is to be done; nothing here waits for the device.

        A process alone also ends here when it is asked to stop. Several go on to where all can agree on it.
        """
        status, stop, train_step = self.status, self.stop, self.trainer.train_step
        is_alone, step, last = self.processes.count == 1, status.step, self._next_stop()
        while step < last:
            train_step(step)
            step += 1
            status.step = step
            if stop.requested and is_alone:
                break

    def _metrics(self) -> dict[str, float]:
        """Wait for the device; stop every process if anything is not finite in one."""
        numbers: dict[str, float] = {}
        error = None
        try:
            numbers = {name: float(value) for name, value in self.trainer.metrics().items()}
        except NonFiniteError as raised:
            error = raised
        for name, value in numbers.items():
            if name.rpartition("/")[2] == "loss" and not math.isfinite(value):
                error = NonFiniteError(f"{name} is {value} at step {self.status.step}")
        if any_true(error is not None, self.processes):
            text = str(error or "a loss or gradient is not finite in another process, which says where")
            if self.processes.is_main:
                self._event("not finite", text)
            raise NonFiniteError(f"{text}; last good checkpoint: {self.checkpoint or 'none yet'}") from error
        return numbers

    def _validate(self, numbers: dict[str, float]) -> tuple[bool, float | None]:
        """Add what validation measures, where it is due; say whether the score is the best so far, and the score."""
        name = self.options.score
        if name is None or not self._is_due(self.options.validate_every):
            return False, None
        measured = self.trainer.validate(self.status.step)
        if name not in measured:
            raise InputError(
                f"the score {name!r} is not measured; there are {', '.join(measured)}{did_you_mean(name, measured)}"
            )
        numbers.update({name: float(value) for name, value in measured.items()})
        # All processes must decide alike.
        score = broadcast_number(numbers[name], self.processes)
        return self._note_score(score, self.status.step), score

    def _groups(self) -> dict[str, dict[str, Tensor]]:
        """Give what a checkpoint holds: the tensors of this process and the random states of all."""
        groups = dict(self.trainer.tensors())
        for rank, tensors in enumerate(gather_tensors(groups.get("rng", {}), self.processes)):
            if rank > 0:
                groups[f"{_RNG_OF}{rank}"] = tensors
        return groups

    def _write(
        self, numbers: dict[str, float], score: float | None, groups: dict[str, dict[str, Tensor]] | None
    ) -> None:
        """Log, then save, so that what a checkpoint knows of is always in the log."""
        record = {"step": self.status.step, **numbers}
        self.metrics_log.write(record)
        self._time({"rate": self.status.rate, "item": self.options.item})
        if self.scalars is not None:
            self.scalars.write(record)
        text = self.trainer.notice(self.status.step, numbers)
        if text is not None and text not in self.notices:
            self.notices.add(text)
            self._event("notice", text)
            self._say(f"Step {self.status.step:,}: {text}")
        self.status.numbers = {
            **self.status.numbers,
            **{name: numbers[name] for name in self.options.shown if name in numbers},
        }
        if self.display is not None:
            self.display.update()
        if groups is not None:
            self._save(groups, score)

    def _save(self, groups: Mapping[str, Mapping[str, Tensor]], score: float | None) -> None:
        self.metrics_log.sync()
        folder = self.folder.checkpoints_path
        finite = score if score is not None and math.isfinite(score) else None
        self.checkpoint = save_checkpoint(folder, self.status.step, groups, {"score": finite, **self.meta})
        prune(folder, self.options.keep_checkpoints)

    def _save_between_logs(self) -> None:
        """Save where no log line is due, and write none: the next line then covers the steps it would have covered."""
        groups = {
            group: {name: tensor.detach().clone() for name, tensor in tensors.items()}
            for group, tensors in self._groups().items()
        }
        # Only now, for it starts the running sums anew; it stops the run if a gradient was not finite.
        self._metrics()
        self._save(groups, None)

    def _event(self, event: str, text: str) -> None:
        self.metrics_log.write({"step": self.status.step, "event": event, "text": text})

    def _time(self, record: Mapping[str, Any]) -> None:
        self.timing_log.write({"step": self.status.step, "seconds": round(self.status.seconds(), 3), **record})

    def _say(self, text: str) -> None:
        _log.info(text)
        if self.display is not None:
            self.display.say(text)

    def _note_score(self, score: float, step: int) -> bool:
        is_better = math.isfinite(score) and (self.best_score is None or score > self.best_score)
        if is_better:
            self.best_score, self.best_step = score, step
        return is_better

    def _has_reached_score(self) -> bool:
        wanted = self.options.stop_at
        return wanted is not None and self.best_score is not None and self.best_score >= wanted

    def _is_due(self, every: int) -> bool:
        return self.status.step % every == 0 or self.status.step == self.options.total_steps

    def _is_stop(self) -> bool:
        """Whether the steps so far end with a log line; all that is due comes with one."""
        options = self.options
        return any(map(self._is_due, (options.log_every, options.validate_every, options.checkpoint_every)))

    def _next_stop(self) -> int:
        options, step = self.options, self.status.step
        periods = (options.log_every, options.validate_every, options.checkpoint_every)
        return min(options.total_steps, *(step - step % every + every for every in periods))
