"""The loop of a live stream: takes requests, gives answers, reports, and saves.

An answer is written before the state that knows of it is saved. So a stream that is killed loses no answer; those after
the last save are given once more, and they are the same.
"""

import math
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from srwm.errors import InputError

from .live_stream import Answer, LiveStream, load_image
from .requests import Request, RequestSource, Stop, Stopped
from .saved_state import Position, state_norm
from .trained_length import far_longer, warning_of

Write = Callable[[Mapping[str, Any]], None]

_DIGITS = 6
"""Digits after the point in probabilities."""
UNNAMED = "questions"
"""What questions without a task are counted under."""


@dataclass(frozen=True)
class ServeOptions:
    """How a stream is served."""

    state: Path | None = None
    """Where the stream is saved; None for nowhere."""
    save_every: int = 100
    """Images between two saves."""
    report_every: int = 1000
    """Images between two reports."""
    steps: int | None = None
    """The stream ends when so many images were answered in all; None for no end."""
    max_norm: float | None = None
    """The state is forgotten when its norm exceeds this; None for never."""
    strict: bool = False
    """Whether the first request that cannot be answered ends the stream."""
    invert: bool = False
    """Whether image files are dark on light, where the model wants bright on dark."""
    reports_only: bool = False
    """Whether to write events and errors only; reports then also tell the speed and the memory."""

    def __post_init__(self) -> None:
        for name in ("save_every", "report_every", "steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"--{name.replace('_', '-')} {value}; expected at least 1")
        if self.max_norm is not None and not self.max_norm > 0:
            raise InputError(f"--max-norm {self.max_norm}; expected more than 0")


def serve(stream: LiveStream, source: RequestSource, write: Write, options: ServeOptions, stop: Stop) -> int:
    """Answer the requests of a source until it ends, or a signal comes.

    Args:
        stream: what answers.
        source: what asks.
        write: takes each answer, event and error, as an object for JSON.
        options: how.
        stop: tells of signals.

    Returns:
        How many requests could not be answered.

    Raises:
        RunError: if the state cannot be saved or is not finite.
        InputError: if the source itself is not what it should be.
    """
    return _Server(stream, source, write, options, stop).run()


class _Server:
    """What `serve` keeps while it runs."""

    def __init__(
        self, stream: LiveStream, source: RequestSource, write: Write, options: ServeOptions, stop: Stop
    ) -> None:
        self.stream, self.source, self.write, self.options, self.stop = stream, source, write, options, stop
        self.errors = 0
        # With a bound, what grows too large is forgotten in time.
        self.too_long = None if options.max_norm is not None else far_longer(stream.model)
        self.answered = source.position
        # What was answered before needs no saving.
        self.saved = Position(source.name, source.position)
        self.reported = time.perf_counter(), stream.step

    def run(self) -> int:
        try:
            if not self._is_at_end():
                self._serve()
        except Stopped:
            pass
        self._save()
        return self.errors

    def _serve(self) -> None:
        for request in self.source:
            before = self.stream.step
            try:
                self._respond(request)
            except InputError as error:
                self._refuse(request, str(error))
                if self.options.strict:
                    return  # The input's position stays before it, so that it can be put right.
            self.answered = self.source.position
            if self.stream.step > before and self.stream.step % self.options.save_every == 0:
                self._save()
            if self.stop.requested or self._is_at_end():
                return

    def _respond(self, request: Request) -> None:
        stream = self.stream
        if request.problem is not None:
            raise InputError(request.problem)
        if request.reset:
            stream.reset()
            self.write({"event": "reset", "step": stream.step})
        if request.report:
            self.write(self._report())
        if request.image is None:
            if request.label is not None:
                stream.tell(request.label)
            return
        image = request.image
        if not isinstance(image, Tensor):
            image = load_image(image, stream.model.image_shape, invert=self.options.invert)
        if request.label is not None:
            stream.check_label(request.label)
        self._bound()
        if not request.learn:
            self._question(request, image)
            return
        answer = stream.ask(image, source=request.source)
        if not self.options.reports_only:
            self.write(_answer_line(answer, request.id))
        if request.label is not None:
            stream.tell(request.label)
        if stream.length == self.too_long:
            self.write({"event": "warning", "step": stream.step, "warning": warning_of(stream.model)})
        if stream.step % self.options.report_every == 0:
            self.write(self._report())

    def _question(self, request: Request, image: Tensor) -> None:
        """Answer without learning, and note how well it was answered."""
        answer = self.stream.question(image, source=request.source)
        if not self.options.reports_only:
            self.write({**_answer_line(answer, request.id), "learn": False})
        if request.label is not None:
            self.stream.mark(request.task or UNNAMED, answer, request.label)

    def _bound(self) -> None:
        """Forget a state that has grown too large: it says nothing any more, and would soon not be finite."""
        if self.options.max_norm is None:
            return
        norm = state_norm(self.stream.state)
        if not norm <= self.options.max_norm:
            self.stream.forget()
            shown = round(norm, _DIGITS) if math.isfinite(norm) else None
            self.write({"event": "forgotten", "step": self.stream.step, "state_norm": shown})

    def _refuse(self, request: Request, sentence: str) -> None:
        self.errors += 1
        echo = {} if request.id is None else {"id": request.id}
        self.write({"error": sentence, **request.where, **echo})
        if request.loses_image:
            self.stream.pass_over()

    def _report(self) -> dict[str, Any]:
        report = self.stream.report()
        line: dict[str, Any] = {
            "event": "report",
            "step": report.step,
            "accuracy": None if report.accuracy is None else round(report.accuracy, _DIGITS),
            "labelled": report.labelled,
            "state_norm": round(report.state_norm, _DIGITS) if report.finite else None,
            "finite": report.finite,
        }
        if report.known:
            line["known"] = {task: round(accuracy, _DIGITS) for task, accuracy in report.known.items()}
        if self.stream.names:
            line["labels"] = list(self.stream.names)
        if self.options.reports_only:
            (then, step), self.reported = self.reported, (time.perf_counter(), report.step)
            line["steps_per_second"] = round((report.step - step) / (self.reported[0] - then), 1)
            line["peak_memory_mb"] = round(_peak_memory_bytes() / 1e6, 1)
        return line

    def _save(self) -> None:
        position = Position(self.source.name, self.answered)
        if self.options.state is not None and position != self.saved:
            self.stream.save(self.options.state, position)
            self.saved = position

    def _is_at_end(self) -> bool:
        return self.options.steps is not None and self.stream.step >= self.options.steps


def _answer_line(answer: Answer, identity: Any) -> dict[str, Any]:
    echo = {} if identity is None else {"id": identity}
    return {
        "step": answer.step,
        **echo,
        "prediction": answer.prediction,
        "probability": round(answer.probability, _DIGITS),
        "probabilities": [round(each, _DIGITS) for each in answer.probabilities],
    }


def _peak_memory_bytes() -> int:
    """The most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # The one thing that is counted in bytes on macOS and in kilobytes on Linux.
    return peak if sys.platform == "darwin" else peak * 1024
