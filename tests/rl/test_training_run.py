"""Runs on real games: training, resuming after a kill, testing and exporting."""

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rich.console import Console

from srwm.errors import InputError
from srwm.experiments import experiment_in
from srwm.rl.experiment import REINFORCEMENT_LEARNING
from srwm.rl.loading import load_agent
from srwm.rl.training_run import level_splits, levels_to_test, loop_options
from srwm.runs.checkpoint import latest_checkpoint
from srwm.runs.experiment import EvaluateOptions

from .toy_envs import toy_config

GAMES = {"names": ("starpilot", "fruitbot"), "num_envs": 4}
TRAIN = {"total_frames": 200, "log_every": 1, "checkpoint_every": 2, "test_levels": 2}


def config_with(**train):
    return toy_config(games=GAMES, train={**TRAIN, **train})


def run(config, path, **options):
    return REINFORCEMENT_LEARNING.train_run(config, path, device="cpu", console=Console(file=io.StringIO()), **options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, library):
    path = tmp_path_factory.mktemp("rl") / "run"
    return path, *run(config_with(), path)


def test_a_run_ends_with_returns_on_train_and_test_levels(trained):
    path, result, content = trained
    assert (result.step, result.interrupted, result.score) == (10, False, None)
    assert content["frames"] == 200
    assert content["parameters"] == sum(p.numel() for p in load_agent(path)[0].parameters())
    assert list(content["test"]) == ["train", "test-1", "test-2", "test-3"]
    assert content["test"]["test-2"]["levels"] == [1200, 2]
    assert content == json.loads((path / "result.json").read_text())


def test_metrics_count_frames(trained):
    lines = [json.loads(line) for line in (trained[0] / "metrics.jsonl").read_text().splitlines()]
    assert [line["frames"] for line in lines] == [20.0 * (i + 1) for i in range(10)]
    assert all(line["train/episodes"] == 0 for line in lines)


def test_the_agent_of_a_run_is_that_of_its_newest_checkpoint(trained):
    agent, config = load_agent(trained[0])
    assert config == config_with()
    weights = latest_checkpoint(trained[0] / "checkpoints").groups["weights"]
    assert all(torch.equal(tensor, weights[name]) for name, tensor in agent.state_dict().items())


def test_a_finished_checkpoint_holds_no_unrolls(trained):
    groups = latest_checkpoint(trained[0] / "checkpoints").groups
    assert {"weights", "optimizer", "actor-0", "actor-1"} <= groups.keys()
    assert "pending" not in groups


def test_it_is_tested_on_every_level_and_by_random_episodes(trained, tmp_path):
    kind = experiment_in(trained[0])
    content, table = kind.evaluate(str(trained[0]), EvaluateOptions(device="cpu", split="validation", episodes=2))
    assert list(content["splits"]) == ["validation"]
    assert [len(returns) for returns in content["splits"]["validation"]["returns"].values()] == [2, 2]
    assert table.row_count == 3  # two games and the score over both
    with pytest.raises(InputError, match="--sets is not for agents"):
        kind.evaluate(str(trained[0]), EvaluateOptions(device="cpu", sets=2))
    with pytest.raises(InputError, match="--episodes: expected at least 1, got 0"):
        kind.evaluate(str(trained[0]), EvaluateOptions(device="cpu", episodes=0))


def test_it_is_exported_with_a_card(trained, tmp_path):
    path, _, content = trained
    experiment_in(path).export(path, tmp_path / "model", content, False, "Apache-2.0")
    agent, _ = load_agent(tmp_path / "model")
    assert all(map(torch.equal, agent.parameters(), load_agent(path)[0].parameters()))
    card = (tmp_path / "model" / "README.md").read_text()
    assert "starpilot, fruitbot (easy), 200 frames" in card
    assert "mean return, test-1" in card


def test_levels_that_overlap_the_test_levels_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"'train' and .* overlap"):
        run(toy_config(games={**GAMES, "num_levels": 1001}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_game_without_the_distribution_is_refused(tmp_path, library):
    with pytest.raises(InputError, match="starpilot has no memory distribution"):
        run(toy_config(games={**GAMES, "distribution": "memory", "num_levels": 500}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tested_are_the_training_levels_and_three_splits():
    config = toy_config(train={"test_levels": 200})
    expected = {"train": (0, 200), "test-1": (1000, 200), "test-2": (1200, 200), "test-3": (1400, 200)}
    found = levels_to_test(config, level_splits(config))
    assert {name: (levels.start, levels.count) for name, levels in found.items()} == expected


def test_steps_of_the_loop_are_iterations():
    config = toy_config()
    options = loop_options(config)
    assert (options.total_steps, options.items_per_step, options.item) == (10, 60, "frames")


LONG = config_with(total_frames=600, overlap=True)
SCRIPT = """
import sys
from pathlib import Path
import torch
sys.path.insert(0, sys.argv[1])
from rl.test_training_run import LONG, run
torch.set_num_threads(1)
run(LONG, Path(sys.argv[2]), test=False, resume=True)
"""


@pytest.mark.usefixtures("library")
def test_a_run_that_is_killed_goes_on_to_the_same_weights_games_and_metrics(tmp_path):
    tests = str(Path(__file__).parent.parent)

    def start(path):
        return subprocess.Popen([sys.executable, "-c", SCRIPT, tests, str(path)])

    process = start(tmp_path / "broken")
    while not list((tmp_path / "broken" / "checkpoints").glob("step-*[0-9]")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    again = start(tmp_path / "broken")
    run(LONG, tmp_path / "unbroken", test=False)
    assert again.wait() == 0
    one, other = (latest_checkpoint(tmp_path / name / "checkpoints") for name in ("unbroken", "broken"))
    assert one.step == other.step == 30
    for group in one.groups:
        for name, tensor in one.groups[group].items():
            assert torch.equal(tensor, other.groups[group][name]), f"{group}: {name}"
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("unbroken", "broken")]
    assert metrics[0] == metrics[1]
