"""What a person sees of a run: a bar in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text

LINE_EVERY_S = 10.0
"""Where there is no terminal, lines come at most this often."""


class Status:
    """What is shown. The loop writes into it; the bar reads it from a thread of its own, so writing costs nothing."""

    def __init__(self, step: int, total_steps: int, item: str) -> None:
        self.first_step = self.step = step
        self.total_steps = total_steps
        self.item = item
        self.rate: float | None = None
        self.numbers: Mapping[str, float] = {}
        self._started = time.monotonic()

    def seconds(self) -> float:
        """Give the time since the start of this process's part of the run."""
        return time.monotonic() - self._started

    def seconds_left(self) -> float | None:
        """Estimate the time to the end from all steps so far, validation and saving included."""
        done = self.step - self.first_step
        return self.seconds() / done * (self.total_steps - self.step) if done else None

    def words(self) -> list[str]:
        """Give the parts of the line."""
        words = [f"step {self.step:,}/{self.total_steps:,}"]
        names = {name: name.removeprefix("train/").replace("/", " ") for name in self.numbers}
        words += [f"{names[name]} {_number(name, value)}" for name, value in self.numbers.items()]
        if self.rate is not None:
            words.append(f"{self.rate:,.{0 if self.rate >= 100 else 1}f} {self.item}/s")
        left = self.seconds_left()
        if left is not None and self.step < self.total_steps:
            words.append(f"{_duration(left)} left")
        return words


class Display:
    """Shows a status on a console while it is entered."""

    def __init__(self, status: Status, console: Console, is_stopping: Callable[[], bool]) -> None:
        self._status, self._console = status, console
        self._last_line_s = 0.0
        self._bar: Progress | None = None
        if console.is_terminal:
            self._bar = Progress(
                _Line(status, is_stopping), _Bar(status), console=console, refresh_per_second=4, transient=True
            )
            self._bar.add_task("", total=None)

    def __enter__(self) -> "Display":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._status.step > self._status.first_step:
            self.say(", ".join(self._status.words()))

    def update(self) -> None:
        """Show a line where there is no bar and the last line is some time ago."""
        if self._bar is None and self._status.seconds() >= self._last_line_s + LINE_EVERY_S:
            self._last_line_s = self._status.seconds()
            self.say(", ".join(self._status.words()))

    def say(self, text: str) -> None:
        """Show a text that stays."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


class _Line(ProgressColumn):
    def __init__(self, status: Status, is_stopping: Callable[[], bool]) -> None:
        super().__init__()
        self._status, self._is_stopping = status, is_stopping

    def render(self, task: Task) -> Text:
        words = self._status.words()
        if self._is_stopping():
            words = [words[0], "stopping and saving; Ctrl-C again stops at once"]
        return Text("  ".join(words))


class _Bar(BarColumn):
    def __init__(self, status: Status) -> None:
        super().__init__(bar_width=None)
        self._status = status

    def render(self, task: Task):  # type: ignore[no-untyped-def]  # rich's own type is private to it
        task.total, task.completed = self._status.total_steps, self._status.step
        return super().render(task)


def _number(name: str, value: float) -> str:
    return f"{value:.1%}" if name.endswith("accuracy") else f"{value:.4g}"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
