"""What runs leave behind: the result of one that finished, the last lines of one that did not."""

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from srwm.errors import InputError
from srwm.runs.charts import LARGEST
from srwm.runs.json_objects import read_object
from srwm.runs.reading import open_file

from ._plan import Job

RESULT_FORMAT = 1
TAIL_BYTES = 1 << 16
TAIL_LINES = 10


@dataclass(frozen=True)
class Result:
    """What a finished run reached."""

    step: int
    score: float | None
    """Best accuracy in validation, where the run validated."""
    test: float | None
    """Accuracy in the test, or another score that the run's kind is judged by, where the run did a test."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended."""

    job: Job
    status: Literal["finished", "failed", "interrupted"]
    reason: str = ""
    """Why it did not finish."""
    result: Result | None = None
    tail: tuple[str, ...] = ()
    """The last lines of its log, where it failed."""


def read_result(job: Job, out: Path) -> Result | None:
    """Read what a job reached; None if it has not finished.

    Raises:
        InputError: if the file is there and is not the result of this job.
    """
    path = job.folder(out) / "result.json"
    if not path.exists():
        return None
    data = read_object(path)
    if data.get("format") != RESULT_FORMAT:
        raise InputError(f"{path} is no result of format {RESULT_FORMAT}")
    if (data.get("recipe"), data.get("seed")) != (job.recipe, job.seed):
        raise InputError(
            f"{path} is of recipe {data.get('recipe')!r} and seed {data.get('seed')!r}, "
            f"and was to be of {job.recipe!r} and {job.seed!r}"
        )
    said = _test_number(data)
    score, step, test = _number(data.get("score")), data.get("step"), _number(said)
    missing = (data.get("score") is not None and score is None) or (said is not None and test is None)
    if missing or type(step) is not int:
        raise InputError(f"{path} lacks a number: it says step {step!r}, score {data.get('score')!r}, test {said!r}")
    return Result(step, score, test)


def is_finished(job: Job, out: Path) -> bool:
    """Whether a job left a result that can be read; one with a broken result has to run again."""
    try:
        return read_result(job, out) is not None
    except InputError:
        return False


def judge(job: Job, out: Path, exit_status: int, *, interrupted: bool = False) -> Outcome:
    """Say how a job ended.

    Args:
        job: the job.
        out: the folder of the sweep.
        exit_status: of its process; below zero if a signal ended it.
        interrupted: whether it was told to stop.
    """
    if exit_status == 0:
        try:
            result = read_result(job, out)
        except InputError as error:
            return _failed(job, out, f"it ended well, but {error}")
        if result is None:
            return _failed(job, out, "it ended well, but left no result.json")
        return Outcome(job, "finished", result=result)
    if interrupted:
        return Outcome(job, "interrupted", describe_exit(exit_status))
    return _failed(job, out, describe_exit(exit_status))


def describe_exit(exit_status: int) -> str:
    """Say in words how a process ended."""
    if exit_status >= 0:
        what = {2: " (bad input)", 130: " (interrupted)"}.get(exit_status, "")
        return f"exit status {exit_status}{what}"
    try:
        name = signal.Signals(-exit_status).name
    except ValueError:
        name = f"signal {-exit_status}"
    hint = "; is there enough memory?" if name == "SIGKILL" else ""
    return f"ended by {name}{hint}"


def last_lines(log: Path, count: int = TAIL_LINES) -> tuple[str, ...]:
    """Read the last lines of a log that hold anything; none if there is no log."""
    if not log.exists():
        return ()
    with open_file(log) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        text = file.read(TAIL_BYTES).decode("utf-8", errors="replace")
    # Control characters could change what a terminal shows.
    lines = (re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", line).rstrip() for line in re.split(r"[\r\n]", text))
    return tuple(line for line in lines if line)[-count:]


def _failed(job: Job, out: Path, reason: str) -> Outcome:
    return Outcome(job, "failed", reason, tail=last_lines(job.log(out)))


def _test_number(data: Mapping[str, Any]) -> object:
    """The number that a test was judged by: None for no test or no single number, and text for something broken."""
    if "test_score" in data:
        return data["test_score"]
    match data.get("test"):
        case {"accuracy": int() | float() as accuracy}:
            return accuracy
        case dict(measures) if measures and "accuracy" not in measures:
            return None
        case None:
            return None
        case broken:
            return repr(broken)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value)
