"""One job as a process: it is started, told to stop, and never runs twice at once in the same folder."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from srwm.runs.atomic import failures_as_sentences
from srwm.runs.lock import try_lock

from ._plan import Job
from ._results import is_finished

TRAIN: tuple[str, ...] = ("-m", "srwm.cli", "train")
"""What Python is given to train."""

GRACE_S = 60.0
"""How long a job may take to save after it was told to stop."""

POLL_S = 0.05


class JobProcess:
    """A job that runs, or waits until another process leaves its folder.

    The job's log is locked while it runs. The process inherits the lock with the log, so the lock outlives a sweep
    that was killed: one that goes on later waits for the orphan instead of training beside it in the same folder.
    """

    def __init__(
        self,
        job: Job,
        out: Path,
        *,
        place: str,
        environment: Mapping[str, str],
        train: Sequence[str] = TRAIN,
        cwd: Path | None = None,
    ) -> None:
        self.job = job
        self.out = out
        self.place = place
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        self._words = [sys.executable, *train, *job.words(out)]
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._stop_at: float | None = None
        path = job.log(out)
        with failures_as_sentences(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without waiting for the other end of a pipe, which is an error then.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK
            self._log: BinaryIO = os.fdopen(os.open(path, flags, 0o666), "ab")

    def poll(self) -> int | None:
        """Go on as far as can be without waiting.

        Returns:
            The exit status once the job has ended (0 as well if another process finished it), None before.
        """
        if self._process is None:
            return self._try_to_start()
        if self._stop_at is not None and time.monotonic() > self._stop_at:
            self.kill()
        status = self._process.poll()
        if status is not None:
            self._log.close()
        return status

    def interrupt(self) -> None:
        """Tell the job to save and end, as Ctrl-C does; it is killed if it has not ended when its time is up."""
        if self._stop_at is not None:
            return
        self._stop_at = time.monotonic() + GRACE_S
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the job at once, with all processes that it started."""
        self._stop_at = 0.0
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _try_to_start(self) -> int | None:
        if self._stop_at is not None:
            self._log.close()
            return -signal.SIGINT
        with failures_as_sentences(self.job.log(self.out)):
            try:
                try_lock(self._log.fileno())
            except BlockingIOError:
                return None
        if is_finished(self.job, self.out):
            self._log.close()
            return 0
        with failures_as_sentences(self.job.log(self.out)):
            self._log.write(f"srwm sweep on {self.place}: {shlex.join(self._words)}\n".encode())
            self._log.flush()
        with _interrupts_reach_children():
            # In a session of its own: Ctrl-C at the terminal reaches the sweep, which passes it on once.
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self._cwd,
                start_new_session=True,
            )
        return None


@contextlib.contextmanager
def _interrupts_reach_children() -> Iterator[None]:
    """Let SIGINT through: a Ray worker blocks it, and a child would inherit that."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
