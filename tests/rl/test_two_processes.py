"""Two processes under torchrun: each acts in its own environments, and all learn the same."""

import json
from pathlib import Path

import pytest
import torch

from .two_processes import RUNS, run


@pytest.fixture(scope="module")
def seen_in_all(tmp_path_factory, in_two_processes):
    folder = tmp_path_factory.mktemp("two")
    in_two_processes(Path(__file__).parent / "two_processes.py", folder)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(params=RUNS)
def name(request):
    return request.param


@pytest.fixture
def seen(seen_in_all, name):
    return [each[name] for each in seen_in_all]


@pytest.fixture
def alone(name):
    """The same run in one process, which has both actors."""
    return run(RUNS[name])


def test_a_checkpoint_has_the_actors_of_all(seen):
    assert [each["actors"] for each in seen] == [["actor-0", "actor-1"]] * 2


def test_resuming_is_bit_exact_in_all_processes(seen):
    for each in seen:
        resumed, unbroken = each["resumed and unbroken"]
        assert resumed == unbroken


def test_all_have_the_same_weights_and_metrics(seen):
    assert seen[0]["weights"] == seen[1]["weights"]
    assert seen[0]["metrics"] == seen[1]["metrics"]


def test_they_learn_what_one_process_learns_from_all_environments(seen, alone):
    # An update takes every unroll here, so only the order of the sums differs.
    for own, tensor in zip(seen[0]["weights"], alone.model.state_dict().values(), strict=True):
        torch.testing.assert_close(torch.tensor(own), tensor.cpu(), atol=1e-5, rtol=1e-4)


def test_episodes_are_those_of_all_environments(seen, alone):
    expected = alone.metrics()
    for name in ("frames", "train/episodes", "train/length/maze", "train/policy_lag"):
        assert seen[0]["metrics"][name] == pytest.approx(expected[name])
