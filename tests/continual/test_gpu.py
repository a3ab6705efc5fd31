"""Training on a GPU, in a recorded step; runs under pytest, and as `python tests/continual/test_gpu.py`."""

import sys
from pathlib import Path

import torch

try:
    import pytest
except ImportError:  # The machine with the GPU may have little more than torch and Triton.
    pytest = None

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from continual.tiny import CPU, bank, config
from fewshot.tiny import assert_equal_weights, weights
from srwm.continual import ContinualTrainer
from srwm.runs.devices import set_deterministic

pytestmark = pytest.mark.gpu if pytest else None

DEVICE = torch.device("cuda")
TASKS = {"augment": 0.5, "augment_sequences": 1.0, "thicken": 1.5, "horizontal_flip": ("a",)}
OPTIONS = {
    "replays": {"tasks": {**TASKS, "replays": 3}, "loss": {"prototypical": 1.0}},
    "few shot": {"tasks": TASKS, "loss": {"few_shot": 1.0, "backward": 0.0, "sources": (0.5,)}},
    "carried": {"tasks": {**TASKS, "labels": "domain_incremental"}, "train": {"carry_state_prob": 0.5}},
}


def trainer(device=DEVICE, **parts):
    set_deterministic(True)
    return ContinualTrainer(config(**parts), bank(), bank(seed=1), device)


def with_precision(parts, precision):
    return {**parts, "train": {**parts.get("train", {}), "precision": precision}}


def steps(one, numbers):
    for number in numbers:
        one.train_step(number)
    return one


def test_two_runs_give_equal_bits():
    for parts in OPTIONS.values():
        for precision in ("float32", "bfloat16"):
            one, other = (steps(trainer(**with_precision(parts, precision)), range(70)) for _ in range(2))
            assert_equal_weights(weights(one.model), weights(other.model))
            assert one.metrics() == other.metrics()


def test_it_goes_on_from_its_tensors_to_the_same_bits():
    for parts in OPTIONS.values():
        one = steps(trainer(**parts), range(60, 64))
        saved = {group: {name: t.cpu().clone() for name, t in each.items()} for group, each in one.tensors().items()}
        steps(one, range(64, 70))
        other = steps(trainer(**parts), range(3))
        other.load_tensors(saved)
        steps(other, range(64, 70))
        assert_equal_weights(weights(one.model), weights(other.model))


def test_the_first_steps_are_those_of_the_cpu():
    for parts in OPTIONS.values():
        found, wanted = (
            steps(trainer(device, **with_precision(parts, "float32")), range(3)).metrics() for device in (DEVICE, CPU)
        )
        for name, number in wanted.items():
            assert abs(found[name] - number) < 1e-3 * max(abs(number), 1), name


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            sys.stdout.write(f"pass {name}\n")
