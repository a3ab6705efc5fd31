"""Training on streams on a GPU, in a recorded step; runs under pytest, and as `python tests/sequential/test_gpu.py`."""

import sys
from pathlib import Path

import torch

try:
    import pytest
except ImportError:  # The machine with the GPU may have little more than torch and Triton.
    pytest = None

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from fewshot.tiny import assert_equal_weights, weights
from sequential.tiny import CPU, bank, config
from srwm.runs.devices import set_deterministic
from srwm.sequential import SequentialTrainer, draw_streams

pytestmark = pytest.mark.gpu if pytest else None

DEVICE = torch.device("cuda")
DROPOUT = {"model": {"dropout": 0.2, "encoder_dropout": 0.2}}


def trainer(device=DEVICE, **parts):
    set_deterministic(True)
    return SequentialTrainer(config(**parts), bank(), bank(seed=1), device)


def steps(one, numbers):
    for number in numbers:
        one.train_step(number)
    return one


def test_streams_are_those_of_the_cpu():
    stream = config(stream={"order": "random"}).stream
    for_each = [
        draw_streams(bank().to(device), torch.arange(20, device=device), stream, batch_size=4, parts=2, seed=3)
        for device in (DEVICE, CPU)
    ]
    for found, wanted in zip(*for_each, strict=True):
        assert torch.equal(found.cpu(), wanted)


def test_two_runs_give_equal_bits():
    for precision in ("float32", "tf32", "bfloat16"):
        for truncate in (None, 7):
            parts = {**DROPOUT, "train": {"precision": precision, "truncate": truncate, "carry_state_prob": 0.5}}
            one, other = (steps(trainer(**parts), range(66)) for _ in range(2))
            assert_equal_weights(weights(one.model), weights(other.model))
            assert one.metrics() == other.metrics()


def test_it_goes_on_from_its_tensors_to_the_same_bits():
    changed = {"horizontal_flip": ("b",), "augment": 0.5}
    parts = {**DROPOUT, "stream": {"feed_previous_features": True, **changed}, "train": {"carry_state_prob": 0.5}}
    one = steps(trainer(**parts), range(60, 64))
    saved = {group: {name: t.cpu().clone() for name, t in each.items()} for group, each in one.tensors().items()}
    steps(one, range(64, 70))
    other = steps(trainer(**parts), range(3))
    other.load_tensors(saved)
    steps(other, range(64, 70))
    assert_equal_weights(weights(one.model), weights(other.model))
    assert one.metrics() == other.metrics()


def test_the_first_steps_are_those_of_the_cpu():
    for memory in ("srwm", "deltanet", "gated_deltanet", "sr_deltanet", "lstm"):
        for truncate in (None, 7):
            parts = {
                "model": {"memory": memory},
                "train": {"precision": "float32", "truncate": truncate, "carry_state_prob": 0.5},
            }
            found, wanted = (steps(trainer(device, **parts), range(3)).metrics() for device in (DEVICE, CPU))
            assert found.keys() == wanted.keys()
            assert abs(found["train/loss"] - wanted["train/loss"]) < 1e-3


def test_validation_is_that_of_the_cpu():
    one, other = (trainer(device, train={"precision": "float32"}) for device in (DEVICE, CPU))
    assert abs(one.validate()["validation/accuracy"] - other.validate()["validation/accuracy"]) < 0.05


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            sys.stdout.write(f"pass {name}\n")
