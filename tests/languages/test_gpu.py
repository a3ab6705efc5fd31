"""Training on languages on a GPU, in a CUDA graph; runs under pytest, and as `python tests/languages/test_gpu.py`."""

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
from languages.tiny import CPU, config
from srwm.languages import LanguagesTrainer, evaluate
from srwm.languages.registry import BUILT_IN
from srwm.languages.tasks import draw_batch, lengths_between
from srwm.runs.devices import set_deterministic

pytestmark = pytest.mark.gpu if pytest else None

DEVICE = torch.device("cuda")
MEMORIES = ("srwm", "deltanet", "gated_deltanet", "lstm", "attention")
GATED = {"memory_options": {"key_map": "l2", "forget_gates": 2, "input_projection": True}}


def trainer(device=DEVICE, **parts):
    set_deterministic(True)
    return LanguagesTrainer(config(**parts), device)


def steps(one, numbers):
    for number in numbers:
        one.train_step(number)
    return one


def test_sequences_are_those_of_the_cpu():
    for task in BUILT_IN:
        for_each = [
            draw_batch(
                task,
                torch.arange(5, device=device),
                lengths_between(task, 2, 60),
                seed=3,
                rng_stream=1,
                batch_size=40,
                same_length=False,
            )
            for device in (DEVICE, CPU)
        ]
        for found, wanted in zip(*for_each, strict=True):
            assert torch.equal(found.cpu(), wanted), task.name


def test_noise_and_validations_beside_a_captured_step_keep_the_bits():
    for memory in MEMORIES:
        parts = {
            "model": {"memory": memory},
            "train": {"state_noise": 0.3, "validation_lengths": ("2-8", "20"), "validation_sequences": 4},
        }
        without = steps(trainer(**parts), range(4))
        one = trainer(**parts)
        for step in range(4):
            one.train_step(step)
            found = one.validate()
        assert_equal_weights(weights(one.model), weights(without.model))
        assert found == without.validate(), memory


def test_two_runs_give_equal_bits():
    for memory in MEMORIES:
        parts = {"model": {"memory": memory, "dropout": 0.0 if memory == "lstm" else 0.2}}
        one, other = (steps(trainer(**parts), range(66)) for _ in range(2))
        assert_equal_weights(weights(one.model), weights(other.model))
        assert one.metrics() == other.metrics()


def test_it_goes_on_from_its_tensors_to_the_same_bits():
    parts = {"model": {"dropout": 0.2}, "task": {"same_length": False}}
    one = steps(trainer(**parts), range(60, 64))
    saved = {group: {name: t.cpu().clone() for name, t in each.items()} for group, each in one.tensors().items()}
    steps(one, range(64, 70))
    other = steps(trainer(**parts), range(3))
    other.load_tensors(saved)
    steps(other, range(64, 70))
    assert_equal_weights(weights(one.model), weights(other.model))
    assert one.metrics() == other.metrics()


def test_the_first_steps_are_those_of_the_cpu():
    for same_length in (True, False):
        for model in (*({"memory": memory} for memory in MEMORIES), GATED):
            parts = {"model": model, "task": {"same_length": same_length}}
            found, wanted = (steps(trainer(device, **parts), range(3)).metrics() for device in (DEVICE, CPU))
            assert found.keys() == wanted.keys()
            assert abs(found["train/loss"] - wanted["train/loss"]) < 1e-4
            assert abs(found["train/accuracy"] - wanted["train/accuracy"]) < 0.05


def test_the_rate_of_each_step_is_that_of_the_recipe():
    one = trainer(optimizer={"warmup_steps": 4, "decay_steps": 3}, train={"total_steps": 10})
    for step in range(10):
        one.train_step(step)
        wanted = one.config.optimizer.rate(step, 10)
        assert abs(float(one.optimizer.adam.param_groups[0]["lr"]) - wanted) < 1e-9


def test_the_test_is_that_of_the_cpu():
    for memory in MEMORIES:
        one = trainer(model={"memory": memory})
        found, wanted = (
            evaluate(one.model.to(device), one.task, ("2-9", "700"), sequences=20, device=device)
            for device in (DEVICE, CPU)
        )
        for mine, other in zip(found.by_length, wanted.by_length, strict=True):
            assert abs(mine.positions - other.positions) < 0.01


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            sys.stdout.write(f"pass {name}\n")
            sys.stdout.flush()
