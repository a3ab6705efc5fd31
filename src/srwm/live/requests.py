"""What may be asked of a live stream, and how it is read from lines of JSON."""

import json
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from srwm.errors import InputError
from srwm.runs.json_objects import parse_object
from srwm.runs.stop_signal import StopSignal
from srwm.runs.suggestions import did_you_mean

KEYS = ("image", "label", "id", "source", "learn", "task", "reset", "report")
"""What may stand in a line."""
LONGEST_LINE = 1 << 20
"""Bytes of the longest line that is read."""
LONGEST_TASK = 100
"""Characters of the longest name of a task."""

T = TypeVar("T")


class Request(NamedTuple):
    """One thing that an input asks for."""

    where: dict[str, int | str]
    """How an error names its place: `{"line": 7}`."""
    image: str | Tensor | None = None
    """An image to answer: a path, or the pixels."""
    label: int | str | None = None
    """The label of that image; without an image, that of the last one."""
    source: str | None = None
    """Which of the model's sources the image is like."""
    learn: bool = True
    """False for a question: the image is answered, and nothing is learnt from it."""
    task: str | None = None
    """The task that a question with a label is counted under in the next report."""
    id: Any = None
    """Echoed in the answer."""
    reset: bool = False
    """Whether to reset the state."""
    report: bool = False
    """Whether to report now."""
    problem: str | None = None
    """What is wrong with it, if it is not to be answered at all."""
    loses_image: bool = True
    """Whether, if it is refused, an image may have been lost whose label must then not be taken for another's."""


@runtime_checkable
class RequestSource(Protocol):
    """Where requests come from."""

    name: str
    """What kind of input it is, and which."""
    position: int | str
    """Up to where requests were handed out; moves only when the next one is asked for."""

    def __iter__(self) -> Iterator[Request]: ...


class Stopped(Exception):
    """Ctrl-C or SIGTERM came while a source waited for input."""


class Stop(StopSignal):
    """Ctrl-C and SIGTERM: answered between two requests, or at once while waiting for one."""

    def __init__(self) -> None:
        super().__init__()
        self._is_waiting = False

    def wait_for(self, wait: Callable[[], T]) -> T:
        """Call a function that may wait for long.

        Raises:
            Stopped: if a signal comes meanwhile, or came before.
        """
        self._is_waiting = True
        try:
            if self.requested:
                raise Stopped
            return wait()
        finally:
            self._is_waiting = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        super()._handle(number, frame)
        if self._is_waiting:
            raise Stopped


class JsonLines:
    """Requests from lines of JSON, one object a line; empty lines are passed over.

    Args:
        readline: gives the next line, or so many bytes of it, as that of a file does.
        stop: breaks off the waiting for a line.
        skip: lines that were answered before.
    """

    name = "lines"

    def __init__(self, readline: Callable[[int], bytes], stop: Stop, *, skip: int = 0) -> None:
        self.position: int | str = skip
        self._readline, self._stop, self._skip = readline, stop, skip

    def __iter__(self) -> Iterator[Request]:
        number = 0
        while line := self._stop.wait_for(self._read):
            number += 1
            if number <= self._skip:
                continue
            self.position = number
            if not line.isspace():
                yield parse_request(line, number)
        if number < self._skip:
            raise InputError(
                f"the input has {number} lines, but {self._skip} were answered before; "
                "--skip-answered wants the same input again"
            )

    def _read(self) -> bytes:
        """Read a line; of one that is too long, only the beginning is kept."""
        line = rest = self._readline(LONGEST_LINE)
        while len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
            line, rest = line[:LONGEST_LINE] + b"\n", self._readline(LONGEST_LINE)
        return line


def parse_request(line: bytes, number: int) -> Request:
    """Read one line; one that cannot be answered becomes a request with a `problem`."""
    where: dict[str, int | str] = {"line": number}
    if len(line) > LONGEST_LINE:
        return Request(where, problem=f"the line has more than {LONGEST_LINE} bytes")
    try:
        values = parse_object(line)
    except ValueError as error:
        # The line's own number stands beside the sentence; that within the line is always 1.
        return Request(where, problem=f"the line is not valid JSON: {str(error).removeprefix('line 1, ')}")
    identity = values.get("id")
    # An image that was not to be learnt is not missed.
    loses_image = bool(values.keys() - {"label", "reset", "report", "id"}) and values.get("learn") is not False
    problem = _problem(values)
    if problem is not None:
        return Request(where, id=identity, problem=problem, loses_image=loses_image)
    return Request(
        where,
        image=values.get("image"),
        label=values.get("label"),
        source=values.get("source"),
        learn=values.get("learn", True),
        task=values.get("task"),
        id=identity,
        reset=values.get("reset", False),
        report=values.get("report", False),
        loses_image=loses_image,
    )


def _problem(values: dict[str, Any]) -> str | None:
    """Say what is wrong with the object in a line; None if nothing is."""
    for key in values:
        if key not in KEYS:
            return f"unknown key {key!r}{did_you_mean(key, KEYS)}; expected {', '.join(KEYS)}"
    for key in ("image", "source", "task"):
        if key in values and (not isinstance(values[key], str) or not values[key]):
            return f"{key} is {json.dumps(values[key])}; expected a word in quotes"
    label = values.get("label")
    if isinstance(label, bool) or not isinstance(label, int | str | None):
        return f"label is {json.dumps(label)}; expected a number or a name in quotes"
    for key in ("reset", "report", "learn"):
        if not isinstance(values.get(key, False), bool):
            return f"{key} is {json.dumps(values[key])}; expected {'false' if key == 'learn' else 'true'}"
    return _contradiction(values)


def _contradiction(values: dict[str, Any]) -> str | None:
    """Say what does not go together in an object whose values are of the right kinds; None if all does."""
    is_asked = "image" in values or values.get("label") is not None
    for key in ("reset", "report"):
        if values.get(key, False) and (is_asked or (key == "report" and values.get("reset", False))):
            return f"{key} stands alone; write the image or the label on a line of its own"
    if values.get("reset", False) or values.get("report", False):
        return None
    if "source" in values and "image" not in values:
        return "source says what an image is like, but the line has no image"
    is_question = not values.get("learn", True)
    if is_question and "image" not in values:
        return "learn: false makes an image a question, but the line has no image"
    if "task" in values and (not is_question or values.get("label") is None):
        return "task says what a question is counted under; it needs learn: false, an image and a label"
    if len(values.get("task", "")) > LONGEST_TASK:
        return f"task has {len(values['task'])} characters; expected at most {LONGEST_TASK}"
    return None if is_asked else "the line asks for nothing; expected an image, a label, a reset, or a report"
