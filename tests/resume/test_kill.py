"""Nothing is lost: a run killed at any moment ends as the one that was never broken off, byte for byte."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from srwm.runs.checkpoint import checkpoint_folders, latest_checkpoint
from srwm.runs.metrics import read_metrics

SERVER = Path(__file__).parent / "fork_server.py"
KILLED = -signal.SIGKILL


class Server:
    """Talks to `fork_server.py`."""

    def __init__(self):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([sys.executable, str(SERVER)], env=environment, text=True, **pipes)

    def train(self, folder, seed=0, **more):
        self._process.stdin.write(json.dumps({"folder": str(folder), "seed": seed, **more}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def unbroken(server, tmp_path_factory):
    """A run that nobody disturbed, and how many calls it made."""
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    answer = server.train(folder)
    assert answer["status"] == 0
    return folder, answer["calls"]


def fingerprint(folder):
    """Give the SHA-256 of every file of the last checkpoint, and the metrics."""
    last = latest_checkpoint(folder / "checkpoints")
    assert last.step == 40
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(last.path.iterdir())}
    return digests, (folder / "metrics.jsonl").read_bytes()


def assert_equal_runs(folder, unbroken):
    assert fingerprint(folder) == fingerprint(unbroken)
    assert [p.name for p in checkpoint_folders(folder / "checkpoints")] == [
        p.name for p in checkpoint_folders(unbroken / "checkpoints")
    ]
    assert sorted(os.listdir(folder)) == sorted(os.listdir(unbroken))
    assert sorted(os.listdir(folder / "checkpoints")) == sorted(os.listdir(unbroken / "checkpoints"))


@pytest.mark.parametrize("seed", range(20))
def test_a_run_killed_at_a_random_moment_ends_as_if_it_had_not_been(server, unbroken, tmp_path, seed):
    whole, calls = unbroken
    folder = tmp_path / "run"
    rng = random.Random(seed)
    moment = rng.randrange(1, calls)
    assert server.train(folder, kill_at_call=moment)["status"] == KILLED
    if seed % 4 == 0:
        # Killed a second time, while or after it resumed.
        server.train(folder, kill_at_call=rng.randrange(1, calls // 2))
    assert server.train(folder)["status"] == 0
    assert_equal_runs(folder, whole)


@pytest.mark.parametrize(
    ("function", "call"), [("rename", 1), ("rename", 4), ("fsync", 2), ("fsync", 30), ("replace", 1)]
)
def test_a_run_killed_while_it_saves_ends_as_if_it_had_not_been(server, unbroken, tmp_path, function, call):
    folder = tmp_path / "run"
    assert server.train(folder, kill_in=function, kill_at=call)["status"] == KILLED
    assert server.train(folder)["status"] == 0
    assert_equal_runs(folder, unbroken[0])


def test_a_kill_between_writing_and_naming_leaves_only_whole_checkpoints(server, tmp_path):
    folder = tmp_path / "run"
    server.train(folder, kill_in="rename", kill_at=2)
    left = sorted(os.listdir(folder / "checkpoints"))
    assert left == ["step-000000005", "step-000000008.tmp"]
    assert latest_checkpoint(folder / "checkpoints").step == 5


def test_the_same_seed_gives_the_same_bytes_in_another_process(unbroken, tmp_path):
    other = Server()
    try:
        assert other.train(tmp_path / "run")["status"] == 0
        assert_equal_runs(tmp_path / "run", unbroken[0])
        assert other.train(tmp_path / "other", seed=1)["status"] == 0
    finally:
        other.close()
    assert (
        fingerprint(tmp_path / "other")[0]["weights.safetensors"] != fingerprint(unbroken[0])[0]["weights.safetensors"]
    )


def test_a_torn_newest_checkpoint_makes_the_run_go_on_from_the_one_before(server, unbroken, tmp_path):
    folder = tmp_path / "run"
    server.train(folder, kill_in="rename", kill_at=6)
    newest = checkpoint_folders(folder / "checkpoints")[-1]
    weights = newest / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert latest_checkpoint(folder / "checkpoints").path < newest
    assert server.train(folder)["status"] == 0
    assert_equal_runs(folder, unbroken[0])


def test_the_clock_file_tells_that_the_run_was_resumed(server, tmp_path):
    server.train(tmp_path / "run", kill_in="rename", kill_at=3)
    server.train(tmp_path / "run")
    events = [record["event"] for record in read_metrics(tmp_path / "run" / "timing.jsonl") if "event" in record]
    assert events == ["started", "resumed"]
