"""What a run shows while it goes on: a bar, lines, or scalars for TensorBoard."""

import io
import re
import sys
import types
from dataclasses import replace

import pytest
from rich.console import Console

from srwm.errors import InputError
from srwm.runs import _progress
from srwm.runs.loop import LoopOptions
from srwm.runs.metrics import read_metrics
from srwm.runs.run_folder import RunFolder

from .looping import run_loop
from .tiny_trainer import TinyTrainer

OPTIONS = LoopOptions(total_steps=10, log_every=3, validate_every=4, checkpoint_every=5, keep_checkpoints=100)


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", {"seed": 0}, kind="tiny")


def test_a_terminal_shows_a_bar_with_rate_and_time_left(folder):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=150)
    run_loop(TinyTrainer(), folder, replace(OPTIONS, items_per_step=16, item="images"), console=console)
    final = out.getvalue()
    assert "step 10/10" in final
    assert "images/s" in final
    assert "validation accuracy" in final
    assert "loss" in final


def test_what_is_shown_says_how_long_it_will_take(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    status = _progress.Status(step=100, total_steps=1100, item="images")
    assert status.words() == ["step 100/1,100"]
    now[0], status.step, status.rate = 110.0, 110, 12345.6
    status.numbers = {"train/loss": 0.51234, "train/accuracy": 0.973, "validation/accuracy": 1.0}
    assert status.words() == [
        "step 110/1,100",
        "loss 0.5123",
        "accuracy 97.3%",
        "validation accuracy 100.0%",
        "12,346 images/s",
        "16:30 left",
    ]
    now[0], status.rate = 200.0, 9.87
    assert status.words()[-2:] == ["9.9 images/s", "2:45:00 left"]


def test_where_there_is_no_terminal_a_line_comes_now_and_then(folder, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])

    class Trainer(TinyTrainer):
        def train_step(self, step):
            super().train_step(step)
            now[0] += 2.0

    out = io.StringIO()
    run_loop(Trainer(), folder, OPTIONS, console=Console(file=out))
    assert [line.split(",")[0] for line in out.getvalue().splitlines()] == ["step 5/10", "step 10/10", "step 10/10"]
    assert "\x1b" not in out.getvalue()


class Writer:
    """Stands for TensorBoard's."""

    made = ()

    def __init__(self, folder, purge_step):
        self.folder, self.purge_step, self.scalars, self.closed = folder, purge_step, [], False
        Writer.made = (*Writer.made, self)

    def add_scalar(self, name, value, step):
        self.scalars.append((step, name, value))

    def flush(self):
        pass

    def close(self):
        self.closed = True


def test_tensorboard_gets_the_same_scalars(folder, monkeypatch):
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(Writer, "made", ())
    run_loop(TinyTrainer(), folder, replace(OPTIONS, tensorboard=True, total_steps=5), show_progress=False)
    run_loop(TinyTrainer(), folder, replace(OPTIONS, tensorboard=True), show_progress=False)
    first, second = Writer.made
    wanted = [
        (record["step"], name, value)
        for record in read_metrics(folder.metrics_path)
        for name, value in record.items()
        if name != "step"
    ]
    assert first.scalars + second.scalars == wanted
    assert (first.purge_step, second.purge_step) == (1, 6)
    assert first.closed
    assert second.closed


def test_tensorboard_that_is_not_installed_is_asked_for_in_one_line(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=re.escape("pip install 'srwm[tensorboard]'")):
        run_loop(TinyTrainer(), folder, replace(OPTIONS, tensorboard=True), show_progress=False)


def test_a_notice_is_shown_as_it_is_on_one_line_however_narrow_the_console():
    out = io.StringIO()
    console = Console(file=out, width=20, force_terminal=True, color_system="truecolor")
    display = _progress.Display(_progress.Status(step=0, total_steps=10, item="images"), console, lambda: False)
    text = "still at chance [b]0.2[/b] after 'a' and 12345 steps: see https://example.org"
    display.say(text)
    assert out.getvalue() == f"{text}\n"
