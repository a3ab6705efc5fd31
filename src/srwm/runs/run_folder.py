"""The folder of a run: everything about it, and all that `evaluate` and `report` need.

```
config.json      {"format": 1, "kind": "few-shot", "version": "0.1.0", "config": {...}}: the whole recipe
metrics.jsonl    one record a line; a pure function of the configuration (srwm.runs.metrics)
timing.jsonl     what the clock said: seconds and rate, when the run was started, resumed, interrupted
checkpoints/     step-000001200/ and so on (srwm.runs.checkpoint)
result.json      the results of the run, once it has ended
```
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import srwm
from srwm.errors import InputError

from .atomic import failures_as_sentences, unreadable_as_sentence, write_atomically
from .config import from_json, to_json
from .json_objects import json_bytes, read_object
from .lock import hold_lock
from .results import read_result
from .suggestions import did_you_mean

__all__ = ["RunFolder"]

FORMAT = 1
"""Number of the newest format of `config.json`; every number up to it can be read."""

_CONFIG = "config.json"


class RunFolder:
    """A run on disk; make one with `create`, `open` or `resume`.

    Attributes:
        path: the folder.
        kind: what was trained, for example "few-shot".
        config: the configuration as JSON values, for `srwm.runs.config.from_json`.
        version: the version of srwm that made the folder.
        is_held: whether who opened it holds its lock for whoever works with this object; see `create`.
    """

    def __init__(self, path: Path, kind: str, config: dict[str, Any], version: str) -> None:
        self.path, self.kind, self.config, self.version = path, kind, config, version
        self.is_held = False

    @classmethod
    def create(
        cls, path: Path, config_json: Mapping[str, Any], *, kind: str, hold: contextlib.ExitStack | None = None
    ) -> "RunFolder":
        """Make the folder of a new run.

        Args:
            path: the folder; it may be there if it is empty.
            config_json: the whole configuration as JSON values.
            kind: what is trained, for example "few-shot".
            hold: keeps the lock of the folder until it is closed; None to lock it only while it is written.

        Raises:
            InputError: if there is a run already, or something else, or another process is at work in the folder.
            RunError: if the folder cannot be written.
        """
        folder = cls(path, kind, dict(config_json), srwm.__version__)
        with failures_as_sentences(path):
            _check_new(path)
            path.mkdir(parents=True, exist_ok=True)
        with folder._locked_for_writing(hold):
            # Another process may have been quicker.
            _check_new(path)
            folder._write_config()
        return folder

    @classmethod
    def open(cls, path: Path, *, kind: str | None = None) -> "RunFolder":
        """Open the folder of a run.

        Raises:
            InputError: if it holds no run, one of another kind, or one of a newer version.
        """
        with unreadable_as_sentence(path):
            if not path.exists():
                raise InputError(f"there is no run at {path}: the folder does not exist{_other_runs(path)}")
            if not (path / _CONFIG).is_file():
                raise InputError(f"{path} is not the folder of a run: it has no {_CONFIG}")
        value = read_object(path / _CONFIG)
        for name, wanted in (("format", int), ("kind", str), ("version", str), ("config", dict)):
            if type(value.get(name)) is not wanted:
                raise InputError(f"{path / _CONFIG} is not the configuration of a run: it has no proper {name!r}")
        if value["format"] > FORMAT:
            made_by = f"format {value['format']}, made by srwm {value['version']}"
            raise InputError(f"{path} has {made_by}; this version reads up to {FORMAT}: install a newer one")
        if kind is not None and value["kind"] != kind:
            raise InputError(f"{path} holds a run of kind {value['kind']!r}; expected {kind!r}")
        return cls(path, value["kind"], value["config"], value["version"])

    @classmethod
    def resume(
        cls,
        path: Path,
        config_json: Mapping[str, Any],
        *,
        kind: str,
        may_change: Sequence[str] = (),
        config_type: type | None = None,
        check: Callable[["RunFolder"], None] | None = None,
        hold: contextlib.ExitStack | None = None,
    ) -> "RunFolder":
        """Open the folder of a run to go on with it.

        Args:
            path: the folder.
            config_json: the whole configuration that is wanted now.
            kind: what is trained.
            may_change: dotted keys that may differ from before, for example "total_steps"; their new values are kept.
            config_type: the dataclass of the configuration, by which keys that an earlier version did not know yet
                count as their defaults.
            check: called before anything is written; raises `InputError` where the run cannot go on as is wanted.
            hold: keeps the lock of the folder until it is closed; None to lock it only while it is written.

        Raises:
            InputError: if it holds no run of this kind, or its configuration differs elsewhere, naming the keys; or if
                another process is training in it.
        """
        folder = cls.open(path, kind=kind)
        with folder._locked_for_writing(hold):
            # Read again, for only now does nobody else write it.
            folder.config = cls.open(path, kind=kind).config
            folder._change_config(config_json, may_change, config_type, check)
        return folder

    def _change_config(
        self,
        config_json: Mapping[str, Any],
        may_change: Sequence[str],
        config_type: type | None,
        check: Callable[["RunFolder"], None] | None,
    ) -> None:
        known = self.config if config_type is None else to_json(from_json(config_type, self.config))
        before, now = _flat(known), _flat(config_json)
        changed = [key for key in {**before, **now} if before.get(key, _ABSENT) != now.get(key, _ABSENT)]
        refused = [key for key in changed if key not in may_change]
        if refused:
            text = ", ".join(f"{key} was {_shown(before, key)} and is now {_shown(now, key)}" for key in refused[:4])
            more = f", and {len(refused) - 4} more" if len(refused) > 4 else ""
            raise InputError(f"{self.path} was made with another configuration: {text}{more}; choose another folder")
        if check is not None:
            check(self)
        if changed:
            self.config = dict(config_json)
            self._write_config()

    @property
    def metrics_path(self) -> Path:
        """The file of the metrics."""
        return self.path / "metrics.jsonl"

    @property
    def timing_path(self) -> Path:
        """The file of what the clock said."""
        return self.path / "timing.jsonl"

    @property
    def checkpoints_path(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def result_path(self) -> Path:
        """The file of the results."""
        return self.path / "result.json"

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write `result.json`.

        Raises:
            RunError: if it cannot be written.
        """
        write_atomically(self.result_path, json_bytes(result))

    def read_result(self) -> dict[str, Any] | None:
        """Read `result.json`; None if the run has not come to an end.

        Raises:
            InputError: if the file is broken.
        """
        return read_result(self.result_path) if self.result_path.exists() else None

    def remove_temporary(self) -> None:
        """Remove the half-written files of a process that was killed; only who holds the lock may do so.

        Raises:
            RunError: if they cannot be removed.
        """
        with failures_as_sentences(self.path):
            for path in sorted(self.path.glob(".*.tmp")):
                path.unlink()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training in this folder; the lock goes with the process, however it ends.

        Raises:
            InputError: if another process holds it.
        """
        busy = InputError(f"another process is training in {self.path}; wait for it, or stop it first")
        with hold_lock(self.path, busy):
            yield

    @contextlib.contextmanager
    def _locked_for_writing(self, hold: contextlib.ExitStack | None) -> Iterator[None]:
        """Lock the folder; afterwards the lock is left to `hold`, where there is one and all went well."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.lock())
            yield
            if hold is not None:
                self.is_held = True
                stack.callback(setattr, self, "is_held", False)
                hold.enter_context(stack.pop_all())

    def _write_config(self) -> None:
        value = {"format": FORMAT, "kind": self.kind, "version": self.version, "config": self.config}
        write_atomically(self.path / _CONFIG, json_bytes(value))


def _check_new(path: Path) -> None:
    """Refuse a path where no run can begin."""
    if (path / _CONFIG).exists():
        raise InputError(f"{path} already holds a run; go on with it by --resume, or choose another folder")
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; expected a folder for the run")
    # A crash just after the folder was made may have left the temporary file.
    strangers = sorted(name for name in _names(path) if name != f".{_CONFIG}.tmp")
    if strangers:
        raise InputError(f"{path} holds {strangers[0]!r} but no run; choose a new folder or an empty one")


_ABSENT = object()


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Give the values under their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _shown(values: Mapping[str, Any], key: str) -> str:
    return repr(values[key]) if key in values else "absent"


def _names(path: Path) -> list[str]:
    return os.listdir(path) if path.is_dir() else []


def _other_runs(path: Path) -> str:
    """Name the run beside `path` whose name is nearest."""
    return did_you_mean(path.name, [name for name in _names(path.parent) if (path.parent / name / _CONFIG).is_file()])
