"""The training loop: steps, logging, validation, checkpoints, resuming and stopping, for any kind of training.

A run is a pure function of its configuration. Killed at any moment and started again, it goes on from the newest whole
checkpoint and ends with the same weights and the same `metrics.jsonl`, byte for byte.
"""

import contextlib
import functools
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from torch import Tensor

from srwm.errors import InputError

from ._contract import Checkpointed, LoopOptions, LoopResult, Trainer
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

__all__ = ["Checkpointed", "LoopOptions", "LoopResult", "Trainer", "TrainingLoop", "check_steps"]

_RNG_OF = "rng-"
"""With a process's number behind it, the group of its random states; that of the main process is "rng"."""

_log = logging.getLogger(__name__)


class TrainingLoop:
    """The steps of a run, from its newest checkpoint or the start to the end, with all that is written on the way.

    Ctrl-C and SIGTERM end it after the step at hand, with everything saved; a second Ctrl-C ends it at once. With
    several processes, all stop together at the next log line.

    Args:
        state: what checkpoints are made of; it is put where the newest one left it.
        folder: where the run lies; no other process may train in it.
        options: what is due when.
        processes: this process among its peers; None for one alone.
        console: where progress is shown; None for the standard error stream.
        show_progress: whether it is shown.
        meta: what every checkpoint says about itself besides its score and the configuration, as JSON values.

    Attributes:
        step: the number of the step at hand, counted from 1: what is done once it ends.
        result: how the loop ended, once it has.

    Raises:
        NonFiniteError: if a loss or gradient is not finite; `metrics.jsonl` then ends with an event that says so.
        InputError: if another process trains in the folder, no checkpoint in it is whole, or the score is unknown.
        RunError: if the disk or the memory of the device is full.

    Example:
        >>> with TrainingLoop(state, folder, LoopOptions(total_steps=1000)) as loop:
        ...     for step in loop:                                  # goes on behind the newest checkpoint
        ...         train_step(step)
        ...         if loop.is_due:                                # something is to be written after this step
        ...             numbers = loop.measure(metrics)            # waits for the device
        ...             if loop.is_validation_due:
        ...                 numbers |= validate()
        ...             loop.record(numbers)                       # a line, the progress, a checkpoint where one is due
    """

    def __init__(
        self,
        state: Checkpointed,
        folder: RunFolder,
        options: LoopOptions,
        *,
        processes: Processes | None = None,
        console: Console | None = None,
        show_progress: bool = True,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder, self.options, self.processes = folder, options, processes or Processes()
        self.meta = {"kind": folder.kind, "config": folder.config, **(meta or {})}
        self.step = 0
        self.result: LoopResult | None = None
        self._state = state
        self._status = Status(0, options.total_steps, options.item)
        self._recorded = 0  # the last step that `record` was called for
        self._console = (console or Console(stderr=True)) if show_progress and self.processes.is_main else None
        self._display: Display | None = None
        self._scalars: Scalars | None = None
        self._best_score: float | None = None
        self._best_step: int | None = None
        self._notices: set[str] = set()
        self._interrupted = False
        self._unlogged: dict[str, dict[str, Tensor]] | None = None  # what is saved of a step where no line is due
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "TrainingLoop":
        with contextlib.ExitStack() as stack:
            folder, options, processes = self.folder, self.options, self.processes
            stack.enter_context(
                full_memory_as_sentence(lambda: f"{processes.device} ran out of memory at step {self._status.step}")
            )
            run_on_main(processes, lambda: None if folder.is_held else stack.enter_context(folder.lock()))
            checkpoint = _starting_point(folder, options)
            self.step = 0 if checkpoint is None else checkpoint.step
            self._checkpoint = None if checkpoint is None else checkpoint.path
            self._status = Status(self.step, options.total_steps, options.item)
            if checkpoint is not None:
                _load(self._state, checkpoint, processes)
            run_on_main(processes, lambda: _clear_up(folder, self.step, options))
            self._stop = stack.enter_context(StopSignal(at_once=processes.count == 1))
            self._read_past()
            # The others have read the old records before the main process adds new ones.
            run_on_main(processes, lambda: self._open_files(stack))
            if self._console is not None:
                show = Display(self._status, self._console, lambda: self._stop.requested)
                self._display = stack.enter_context(show)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[int]:
        """Give the number of each step, counted from 0; where `is_due` holds, `record` must be called after it."""
        status, options, reached = self._status, self.options, self._has_reached_score()
        self._since, self._next_stop = (self.step, status.seconds()), self._find_next_stop()
        # Between two stops as little as can be: a step on a GPU takes 1.5 ms and must not wait for Python.
        while self.step < options.total_steps and not self._interrupted and not reached:
            self.step += 1
            yield self.step - 1
            status.step = self.step
            if self.step == self._next_stop:
                if self._recorded != self.step:
                    raise RuntimeError(f"`record` was not called after step {self.step:,}, where `is_due` held")
                self._next_stop = self._find_next_stop()
                reached = self._has_reached_score()
        if self._interrupted and self.processes.is_main:
            self._time({"event": "interrupted"})
        self.result = LoopResult(
            step=self.step,
            score=self._best_score,
            score_step=self._best_step,
            interrupted=self._interrupted,
            stopped_early=reached,
            seconds=status.seconds(),
            checkpoint=self._checkpoint,
        )
        # What follows is no longer a step: nothing is shown of it, and Ctrl-C is nobody's request.
        self._stack.close()

    @property
    def is_due(self) -> bool:
        """Whether after the step at hand a line, a validation or a checkpoint is due.

        For a process alone also where it was asked to stop. Several go on to where all can agree on it.
        """
        return self.step == self._next_stop or (self._stop.requested and self.processes.count == 1)

    @property
    def is_validation_due(self) -> bool:
        """Whether after the step at hand a validation is due."""
        return self.options.score is not None and self._is_every(self.options.validate_every)

    def measure(self, metrics: Callable[[], Mapping[str, float]]) -> dict[str, float]:
        """Ask for the means over the steps since the last call; stop every process if one is not finite in one.

        Args:
            metrics: gives numbers named like "train/loss", and sets their sums back to zero; it waits for the device.
                Where it exchanges something between processes, it must do so before it can raise.

        Raises:
            NonFiniteError: if `metrics` does, or a loss is not finite.
        """
        self._status.step = self.step
        if self.step != self._next_stop:
            # A step behind which no line is due: the next line is to cover the steps it would have covered.
            self._unlogged = {
                group: {name: tensor.detach().clone() for name, tensor in tensors.items()}
                for group, tensors in self._groups().items()
            }
        numbers: dict[str, float] = {}
        error = None
        try:
            numbers = {name: float(value) for name, value in metrics().items()}
        except NonFiniteError as raised:
            error = raised
        for name, value in numbers.items():
            if name.rpartition("/")[2] == "loss" and not math.isfinite(value):
                error = NonFiniteError(f"{name} is {value} at step {self.step}")
        if any_true(error is not None, self.processes):
            text = str(error or "a loss or gradient is not finite in another process, which says where")
            if self.processes.is_main:
                self._event("not finite", text)
            raise NonFiniteError(f"{text}; last good checkpoint: {self._checkpoint or 'none yet'}") from error
        step, seconds = self._since
        self._status.rate = (
            (self.step - step) * self.options.items_per_step / max(self._status.seconds() - seconds, 1e-9)
        )
        return numbers

    def record(self, numbers: Mapping[str, float], notice: str | None = None) -> None:
        """Write what is due after the step at hand: a line of metrics, the progress, a checkpoint.

        Args:
            numbers: what `measure` gave, and where a validation is due what it measured.
            notice: what a person should know, such as a plateau at chance level; each text is shown once.
        """
        self._recorded = self.step
        if self._unlogged is not None:
            self._save(self._unlogged, None)
            self._interrupted = True
            return
        is_better, score = self._take_score(numbers)
        reached = self._has_reached_score()
        wants_stop = any_true(self._stop.requested, self.processes)
        self._interrupted = wants_stop and self.step < self.options.total_steps and not reached
        must_save = is_better or reached or self._interrupted or self._is_every(self.options.checkpoint_every)
        groups = self._groups() if must_save else None
        run_on_main(self.processes, functools.partial(self._write, numbers, notice, score, groups))
        self._since = (self.step, self._status.seconds())

    def _read_past(self) -> None:
        """Take from the metrics what the run has said and reached so far."""
        folder, score = self.folder, self.options.score
        for record in read_metrics(folder.metrics_path) if folder.metrics_path.exists() else []:
            if record.get("event") == "notice":
                self._notices.add(str(record.get("text")))
            elif score is not None and isinstance(record.get(score), float):
                self._note_score(record[score], record["step"])

    def _open_files(self, stack: contextlib.ExitStack) -> None:
        """Open what the main process writes."""
        self._metrics_log = stack.enter_context(MetricsLog(self.folder.metrics_path))
        self._timing_log = stack.enter_context(MetricsLog(self.folder.timing_path))
        if self.options.tensorboard:
            self._scalars = Scalars(self.folder.path / "tensorboard", self.step)
            stack.callback(self._scalars.close)
        self._time({"event": "resumed" if self._checkpoint else "started"})

    def _take_score(self, numbers: Mapping[str, float]) -> tuple[bool, float | None]:
        """Say whether a score that is due is the best so far, and the score."""
        name = self.options.score
        if name is None or not self.is_validation_due:
            return False, None
        if name not in numbers:
            raise InputError(
                f"the score {name!r} is not measured; there are {', '.join(numbers)}{did_you_mean(name, numbers)}"
            )
        # All processes must decide alike.
        score = broadcast_number(float(numbers[name]), self.processes)
        return self._note_score(score, self.step), score

    def _groups(self) -> dict[str, dict[str, Tensor]]:
        """Give what a checkpoint holds: the tensors of this process and the random states of all."""
        groups = dict(self._state.tensors())
        for rank, tensors in enumerate(gather_tensors(groups.get("rng", {}), self.processes)):
            if rank > 0:
                groups[f"{_RNG_OF}{rank}"] = tensors
        return groups

    def _write(
        self,
        numbers: Mapping[str, float],
        notice: str | None,
        score: float | None,
        groups: dict[str, dict[str, Tensor]] | None,
    ) -> None:
        """Log, then save, so that what a checkpoint knows of is always in the log."""
        record = {"step": self.step, **{name: float(value) for name, value in numbers.items()}}
        self._metrics_log.write(record)
        self._time({"rate": self._status.rate, "item": self.options.item})
        if self._scalars is not None:
            self._scalars.write(record)
        if notice is not None and notice not in self._notices:
            self._notices.add(notice)
            self._event("notice", notice)
            self._say(f"Step {self.step:,}: {notice}")
        self._status.numbers = {
            **self._status.numbers,
            **{name: numbers[name] for name in self.options.shown if name in numbers},
        }
        if self._display is not None:
            self._display.update()
        if groups is not None:
            self._save(groups, score)

    def _save(self, groups: Mapping[str, Mapping[str, Tensor]], score: float | None) -> None:
        self._metrics_log.sync()
        folder = self.folder.checkpoints_path
        finite = score if score is not None and math.isfinite(score) else None
        self._checkpoint = save_checkpoint(folder, self.step, groups, {"score": finite, **self.meta})
        prune(folder, self.options.keep_checkpoints)

    def _event(self, event: str, text: str) -> None:
        self._metrics_log.write({"step": self.step, "event": event, "text": text})

    def _time(self, record: Mapping[str, Any]) -> None:
        self._timing_log.write({"step": self.step, "seconds": round(self._status.seconds(), 3), **record})

    def _say(self, text: str) -> None:
        _log.info(text)
        if self._display is not None:
            self._display.say(text)

    def _note_score(self, score: float, step: int) -> bool:
        is_better = math.isfinite(score) and (self._best_score is None or score > self._best_score)
        if is_better:
            self._best_score, self._best_step = score, step
        return is_better

    def _has_reached_score(self) -> bool:
        wanted = self.options.stop_at
        return wanted is not None and self._best_score is not None and self._best_score >= wanted

    def _is_every(self, steps: int) -> bool:
        return self.step % steps == 0 or self.step == self.options.total_steps

    def _find_next_stop(self) -> int:
        """The next step that ends with a log line; all that is due comes with one."""
        options, step = self.options, self.step
        periods = (options.log_every, options.validate_every, options.checkpoint_every)
        return min(options.total_steps, *(step - step % every + every for every in periods))


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


def _load(state: Checkpointed, checkpoint: Checkpoint, processes: Processes) -> None:
    """Put a training where a checkpoint left it."""
    try:
        state.load_tensors(_own_groups(checkpoint, processes))
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
