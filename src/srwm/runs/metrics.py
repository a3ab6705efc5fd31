"""Metrics as JSON lines: one record a line, readable by anything, at any time.

Every record carries `"step"`, the number of training steps done. `metrics.jsonl` holds only what follows from the seed
and the step, so that equal runs, broken off or not, write equal bytes; what the clock says goes to `timing.jsonl`.
A record with `"event"` tells of something that happened once: `{"step": 312, "event": "not finite", "text": ...}`.
"""

import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from srwm.errors import InputError

from .atomic import failures_as_sentences, write_all, write_atomically
from .json_objects import parse_object
from .reading import open_file

__all__ = ["MetricsLog", "cut_metrics", "read_metrics"]

NOT_FINITE = "not_finite"
"""The key under which a record names its values that JSON has no numbers for."""

LONGEST_LINE = 1 << 20
"""Bytes of the longest record that is read."""


class MetricsLog:
    """A file to which records are added; each is handed to the system as one whole line at once.

    JSON has no NaN and no infinity. Such a value is written as `null`, and the record says what it was:
    `{"step": 5, "train/loss": null, "not_finite": {"train/loss": "nan"}}`.

    Args:
        path: the file; it is made if it is not there. A half line at its end, left by a crash, is dropped.

    Raises:
        InputError: if something else than a log is there.
        RunError: if it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with failures_as_sentences(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                    raise InputError(f"{path} is not a file but a pipe or a device; expected a file, or none")
                self._size = _whole_size(self._descriptor, path)
                os.ftruncate(self._descriptor, self._size)
            except BaseException:
                self.close()
                raise

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a record.

        Raises:
            RunError: if the disk is full; the file then still ends with a whole line.
        """
        line = _line(record)
        with failures_as_sentences(self.path):
            try:
                write_all(self._descriptor, line)
            except OSError:
                os.ftruncate(self._descriptor, self._size)
                raise
        self._size += len(line)

    def sync(self) -> None:
        """Wait until the disk has every record."""
        with failures_as_sentences(self.path):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> "MetricsLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read every whole record; a half line at the end, left by a crash, is ignored.

    Raises:
        InputError: if the file cannot be read, or a whole line is broken or too long; it names the line.
    """
    return [record for record, _ in _records(path)]


def cut_metrics(path: Path, step: int) -> None:
    """Drop the records beyond a step, so that a run which goes on from there writes them again.

    The lines that stay keep their bytes. A file that is not there stays away.

    Raises:
        InputError: if a line is broken or says no step.
        RunError: if the file cannot be written; it is then as it was.
    """
    if not path.exists():
        return
    kept = []
    for number, (record, line) in enumerate(_records(path), start=1):
        if type(record.get("step")) is not int:
            raise InputError(f"{path}, line {number} says no step; every record carries its step as a whole number")
        if record["step"] <= step:
            kept.append(line)
    data = b"".join(kept)
    with open_file(path) as file:
        is_same = file.read() == data
    if not is_same:
        write_atomically(path, data)


def _line(record: Mapping[str, Any]) -> bytes:
    bad = {name: str(value) for name, value in record.items() if isinstance(value, float) and not math.isfinite(value)}
    if bad:
        record = {**record, **dict.fromkeys(bad), NOT_FINITE: bad}
    return (json.dumps(record, allow_nan=False) + "\n").encode()


def _records(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Read the whole records of a file, each with its line."""
    with open_file(path) as file:
        number = 0
        # Only "\n" ends a line: other line breaks may stand inside a text.
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise InputError(f"{path}, line {number} has more than {LONGEST_LINE:,} bytes; no record is so long")
            if not line.endswith(b"\n"):
                return  # A half line, left by a crash.
            try:
                yield parse_object(line[:-1]), line
            except ValueError as error:
                raise InputError(f"{path}, line {number} is not a JSON record: {error}") from None


def _whole_size(descriptor: int, path: Path) -> int:
    """Count the bytes up to the end of the last whole line.

    Raises:
        InputError: if what follows it is longer than any half record.
    """
    size = os.fstat(descriptor).st_size
    start = max(0, size - LONGEST_LINE)
    end = os.pread(descriptor, size - start, start).rfind(b"\n")
    if start and end < 0:
        raise InputError(f"{path}: its last line has more than {LONGEST_LINE:,} bytes; no record is so long")
    return start + end + 1
