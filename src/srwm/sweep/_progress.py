"""What a sweep shows while it runs: a line for each job that ends, and on a terminal a live table."""

import time
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ._plan import Job
from ._results import Outcome, last_lines

REFRESH_S = 1.0
SHOWN_RUNNING = 16
STYLES = {"finished": "green", "failed": "bold red", "interrupted": "yellow"}


class SweepProgress:
    """Notes what happens to the jobs and shows it."""

    def __init__(self, console: Console, out: Path, total: int, before: int) -> None:
        self.outcomes: list[Outcome] = []
        self._console = console
        self._out = out
        self._total = total
        self._before = before
        self._running: dict[str, tuple[Job, str, float]] = {}
        self._begin = time.monotonic()
        self._shown_at = 0.0
        self._stopping = False
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> "SweepProgress":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def started(self, job: Job, place: str) -> None:
        """Note that a job runs."""
        self._running[job.name] = (job, place, time.monotonic())

    def ended(self, outcome: Outcome) -> None:
        """Note that a job has ended, and print its line."""
        name = outcome.job.name
        begin = self._running.pop(name)[2] if name in self._running else None
        self.outcomes.append(outcome)
        line = Text.assemble(
            f"[{self._before + len(self.outcomes)}/{self._total}] ",
            (outcome.status, STYLES[outcome.status]),
            f" {name}",
        )
        if outcome.result:
            accuracies = {"validation": outcome.result.score, "test": outcome.result.test}
            known = [f"{what} {value:.2%}" for what, value in accuracies.items() if value is not None]
            line.append(f": {', '.join(known) or 'neither validated nor tested'}")
        elif outcome.reason:
            line.append(f": {outcome.reason}")
        if begin is not None:
            line.append(f" ({duration(time.monotonic() - begin)})")
        self._console.print(line, soft_wrap=True)

    def stopping(self) -> None:
        """Say once that the running jobs are saving."""
        if self._running and not self._stopping:
            self._console.print("Stopping: the runs are saving. Ctrl-C again ends them at once.", soft_wrap=True)
        self._stopping = True

    def tick(self) -> None:
        """Draw the table again when it is time to."""
        if self._live and time.monotonic() - self._shown_at >= REFRESH_S:
            self._shown_at = time.monotonic()
            self._live.update(self._table(), refresh=True)

    def count(self, status: str) -> int:
        """How many jobs have ended in this way, in this sweep and before."""
        ended = sum(outcome.status == status for outcome in self.outcomes)
        return ended + (self._before if status == "finished" else 0)

    def _table(self) -> Group:
        waiting = self._total - self._before - len(self.outcomes) - len(self._running)
        counts = [
            f"{len(self._running)} running",
            f"{waiting} waiting",
            f"{self.count('finished')} finished",
            f"{self.count('failed')} failed",
        ]
        if self.outcomes:
            spent = time.monotonic() - self._begin
            counts.append(f"about {duration(spent * (waiting + len(self._running)) / len(self.outcomes))} left")
        shown = list(self._running.values())[:SHOWN_RUNNING]
        table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        table.add_column("running", no_wrap=True, ratio=2)
        table.add_column("on", no_wrap=True, width=min(24, max((len(place) for _, place, _ in shown), default=2)))
        table.add_column("for", no_wrap=True, width=len("59 min 59 s"))
        table.add_column("last line", no_wrap=True, ratio=3)
        for job, place, begin in shown:
            last = last_lines(job.log(self._out), 1)
            age = duration(time.monotonic() - begin)
            table.add_row(Text(job.name), Text(place), age, Text(last[0] if last else ""))
        return Group(Text(", ".join(counts), style="bold"), table)


def duration(seconds: float) -> str:
    """Write a time in the two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
