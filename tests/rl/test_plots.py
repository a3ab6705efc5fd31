"""Learning curves as pictures."""

import json
import math

import pytest

from srwm.errors import InputError
from srwm.rl.config import RLConfig
from srwm.rl.loading import KIND
from srwm.rl.plots import _curves, plot_returns
from srwm.runs.config import to_json
from srwm.runs.run_folder import RunFolder

METRICS = [
    {"step": step, "frames": 1000.0 * step, "train/loss": 1.0, "train/return/bigfish": 2.0 * step}
    | ({"train/return/starpilot": 1.0} if step % 2 else {})
    for step in range(1, 6)
]


@pytest.fixture
def run(tmp_path):
    def make(name, metrics):
        folder = RunFolder.create(tmp_path / name, to_json(RLConfig()), kind=KIND)
        folder.metrics_path.write_text("".join(json.dumps(record) + "\n" for record in metrics))
        return folder.path

    return make


def test_each_game_has_a_picture_and_each_run_a_line(run, tmp_path):
    runs = {"SRWM": run("a", METRICS), "Fake SR": run("b", METRICS[:1])}
    plot_returns(runs, tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text()
    for word in ("SRWM", "Fake SR", "bigfish", "starpilot", "million frames", "mean return in training"):
        assert f"<!-- {word} -->" in text


def test_lines_are_averaged_and_games_without_an_ended_episode_left_out(run):
    found = _curves(run("a", METRICS), 2000.0, math.inf)
    assert found == {
        "bigfish": ([2000.0, 5000.0], [3.0, 8.0]),
        "starpilot": ([3000.0, 5000.0], [1.0, 1.0]),
    }


def test_a_run_that_logs_more_often_has_as_many_points(run):
    often = [{"step": 1, "frames": 250.0 * n, "train/return/bigfish": 1.0} for n in range(1, 21)]
    frames = [
        _curves(run(name, each), 1000.0, math.inf)["bigfish"][0] for name, each in {"a": METRICS, "b": often}.items()
    ]
    assert frames[0] == frames[1] == [1000.0, 2000.0, 3000.0, 4000.0, 5000.0]


def test_the_picture_ends_where_it_is_told_to(run):
    assert _curves(run("a", METRICS), 0.0, 3000.0)["bigfish"] == ([1000.0, 2000.0, 3000.0], [2.0, 4.0, 6.0])


def test_fewer_frames_than_a_point_takes_are_one_point(run):
    assert _curves(run("a", METRICS[:2]), 3000.0, math.inf)["bigfish"] == ([2000.0], [3.0])


def test_a_run_without_an_ended_episode_gets_a_sentence(run, tmp_path):
    with pytest.raises(InputError, match="holds no returns: no episode has ended yet"):
        plot_returns({"x": run("a", [{"step": 1, "frames": 10.0}])}, tmp_path / "x.svg")


def test_nothing_to_draw_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="there are no runs to draw"):
        plot_returns({}, tmp_path / "x.svg")
