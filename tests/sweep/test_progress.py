"""What is shown while a sweep runs."""

import io

import pytest
from rich.console import Console

from srwm.sweep import _progress, make_plan
from srwm.sweep._progress import SweepProgress, duration
from srwm.sweep._results import Outcome, Result

PLAN = make_plan(["a"], seeds=(0, 1, 2, 3))


def shown(console):
    return console.file.getvalue()


@pytest.fixture
def screen():
    return Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)


def test_terminal_shows_the_running_jobs_their_place_and_their_last_line(screen, tmp_path, monkeypatch):
    monkeypatch.setattr(_progress, "REFRESH_S", 0.0)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a,seed=0.txt").write_text("step 1\nstep 2 [/red]\n")
    with SweepProgress(screen, tmp_path, total=4, before=1) as progress:
        progress.started(PLAN.jobs[0], "gpu 3")
        progress.tick()
    assert "1 running, 2 waiting, 1 finished, 0 failed" in shown(screen)
    row = [line for line in shown(screen).splitlines() if "a,seed=0" in line][-1]
    assert "gpu 3" in row
    assert "step 2 [/red]" in row


def test_time_left_is_shown_once_a_run_has_ended(screen, tmp_path, monkeypatch):
    monkeypatch.setattr(_progress, "REFRESH_S", 0.0)
    with SweepProgress(screen, tmp_path, total=4, before=0) as progress:
        progress.tick()
        assert "left" not in shown(screen)
        progress.ended(Outcome(PLAN.jobs[0], "failed", "exit status 1"))
        progress.tick()
    assert "0 running, 3 waiting, 0 finished, 1 failed, about " in shown(screen)


def test_file_gets_a_line_for_each_run_and_nothing_else(tmp_path):
    console = Console(file=io.StringIO(), width=100)
    with SweepProgress(console, tmp_path, total=4, before=0) as progress:
        progress.started(PLAN.jobs[0], "cpu 0")
        progress.tick()
        progress.ended(Outcome(PLAN.jobs[1], "finished", result=Result(7, 0.5, None)))
        progress.ended(Outcome(PLAN.jobs[2], "failed", "exit status [1]"))
        progress.ended(Outcome(PLAN.jobs[3], "finished", result=Result(7, None, None)))
    assert shown(console).splitlines() == [
        "[1/4] finished a,seed=1: validation 50.00%",
        "[2/4] failed a,seed=2: exit status [1]",
        "[3/4] finished a,seed=3: neither validated nor tested",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599.0, "59 min 59 s"), (90_061.0, "25 h 1 min")]
)
def test_duration_is_written_in_two_units(seconds, text):
    assert duration(seconds) == text
