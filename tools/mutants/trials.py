"""Runs tests on mutants, each in a process forked from this one, in copies of the repository.

What takes long to import is imported once, here; srwm itself is first imported after the fork, so that a mutant is what
its tests see.
"""

import contextlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

COPIED = ("src", "tests", "pyproject.toml")
MEMORY_BYTES = 24 << 30
"""Address space of a trial: a wrong size must not take all memory of the machine."""
ALL_PASSED = 0
"""pytest's exit status when all tests pass."""
NONE_SELECTED = 5
"""pytest's exit status when none of the tests is one of those that are asked for."""


class Trial(NamedTuple):
    """Tests to be run on a copy of the repository in which one file is changed."""

    name: str
    path: str
    """The file that is changed, from the root of the repository."""
    source: bytes
    """What it then holds."""
    stages: tuple[tuple[str, ...], ...]
    """Arguments of pytest; a stage begins if the one before it found nothing."""
    timeout_s: float
    """For each stage; what takes longer hangs."""
    compiled_in: str | None = None
    """A folder whose loops numba compiles anew for each trial: it does not see changes in other files than a loop's."""
    seconds: Mapping[str, float] = MappingProxyType({})
    """How long each test takes; the quickest runs first, and one that is not named here at once."""


class Result(NamedTuple):
    """What came of a trial."""

    name: str
    outcome: str
    """"survived", "killed", or "timeout", which is "killed" too."""
    seconds: float


def import_what_is_slow() -> None:
    """Import here what each trial would otherwise import again; nothing of srwm, and nothing that starts threads."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TRITON_INTERPRET"] = "1"
    import beartype  # noqa: F401
    import hypothesis  # noqa: F401
    import jaxtyping  # noqa: F401
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import rich.console  # noqa: F401
    import torch._dynamo  # noqa: F401

    assert "srwm" not in sys.modules


class _QuickestFirst:
    """A plugin of pytest: a mutant that many tests would notice costs no more than the quickest of them."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))


class Place:
    """A copy of the repository, in which one trial at a time takes place."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(root / name, folder / name)
        # Python tells a compiled file's source by its size and time alone; so each change gets a time of its own.
        self.time = 1_000_000_000

    def write(self, path: str, source: bytes, compiled_in: str | None) -> None:
        """Change a file."""
        (self.root / path).write_bytes(source)
        self.time += 10
        os.utime(self.root / path, (self.time, self.time))
        if compiled_in is not None:
            for index in (self.root / compiled_in).rglob("*.nbi"):
                index.unlink()

    def start(self, arguments: Sequence[str], seconds: Mapping[str, float]) -> int:
        """Start pytest in a process of its own group; its number."""
        process = os.fork()
        if process == 0:
            # Nothing of this process may go on in the child, whatever happens there.
            status = 70
            try:
                status = self._run(arguments, seconds)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        with contextlib.suppress(OSError):
            os.setpgid(process, process)
        return process

    def _run(self, arguments: Sequence[str], seconds: Mapping[str, float]) -> int:
        import pytest

        os.setpgid(0, 0)
        # As where tests are run by hand, whatever this program was started from.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        output = os.open(self.root / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(self.root)
        sys.path[:0] = [str(self.root / "src")]
        os.environ["PYTHONPATH"] = str(self.root / "src")
        # Nothing of the user's is at hand for what has gone wrong.
        os.environ["HOME"] = os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(self.root / "home")
        options = ["-q", "-x", "--tb=short", "-p", "no:cacheprovider", f"--basetemp={self.root / 'tmp'}"]
        # That of pytest's plugins which were imported above.
        options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
        return int(pytest.main([*options, *arguments], [_QuickestFirst(seconds)]))


def run(trials: Sequence[Trial], places: Sequence[Place]) -> Iterator[Result]:
    """Run trials, as many at a time as there are places, and give each result as soon as it is there."""
    waiting, free = deque(trials), list(places)
    running: dict[int, _Running] = {}
    try:
        while waiting or running:
            while waiting and free:
                started = _Running(waiting.popleft(), free.pop())
                running[started.process] = started
            time.sleep(0.02)
            for process, one in list(running.items()):
                outcome = one.outcome()
                if outcome is None:
                    continue
                del running[process]
                if outcome == "next":
                    running[one.process] = one
                    continue
                one.restore()
                free.append(one.place)
                yield Result(one.trial.name, outcome, round(time.monotonic() - one.began, 2))
    finally:
        for one in running.values():
            one.end()


class _Running:
    """A trial that takes place."""

    def __init__(self, trial: Trial, place: Place) -> None:
        self.trial, self.place, self.stages = trial, place, deque(trial.stages)
        self.began = time.monotonic()
        self.before = (place.root / trial.path).read_bytes()
        place.write(trial.path, trial.source, trial.compiled_in)
        self._next()

    def _next(self) -> None:
        self.process = self.place.start(self.stages.popleft(), self.trial.seconds)
        self.deadline = time.monotonic() + self.trial.timeout_s

    def outcome(self) -> str | None:
        """What came of it; None while it goes on, "next" if a next stage has begun."""
        ended, status = os.waitpid(self.process, os.WNOHANG)
        if ended == 0:
            if time.monotonic() < self.deadline:
                return None
            self.end()
            return "timeout"
        self._end_group()
        if os.waitstatus_to_exitcode(status) not in (ALL_PASSED, NONE_SELECTED):
            return "killed"
        if not self.stages:
            return "survived"
        self._next()
        return "next"

    def end(self) -> None:
        """End its process, and all that this one has started."""
        self._end_group()
        os.waitpid(self.process, 0)

    def _end_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process, signal.SIGKILL)

    def restore(self) -> None:
        """Take the change back."""
        self.place.write(self.trial.path, self.before, self.trial.compiled_in)
