"""Training on a GPU, in a recorded step; runs under pytest, and as `python tests/fewshot/test_gpu.py`."""

import sys
from pathlib import Path

import torch

try:
    import pytest
except ImportError:  # The machine with the GPU may have little more than torch and Triton.
    pytest = None

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from fewshot.tiny import CPU, assert_equal_weights, config, image_set, weights
from srwm.fewshot import BootstrapConfig, FewShotTrainer
from srwm.runs.devices import set_deterministic
from srwm.runs.gradient_watch import NonFiniteError

pytestmark = pytest.mark.gpu if pytest else None

DEVICE = torch.device("cuda")
OPTIONS = {"task": {"augment": 0.5, "augment_episodes": 1.0}, "model": {"dropout": 0.2, "encoder_dropout": 0.2}}


def trainer(device=DEVICE, **parts):
    set_deterministic(True)
    return FewShotTrainer(config(**parts), image_set(), image_set(seed=1), device)


def steps(one, numbers):
    for number in numbers:
        one.train_step(number)
    return one


def test_two_runs_give_equal_bits():
    for precision in ("float32", "tf32", "bfloat16"):
        parts = {**OPTIONS, "train": {"precision": precision}}
        one, other = (steps(trainer(**parts), range(70)) for _ in range(2))
        assert_equal_weights(weights(one.model), weights(other.model))
        assert one.metrics() == other.metrics()


def test_it_goes_on_from_its_tensors_to_the_same_bits():
    one = steps(trainer(**OPTIONS), range(60, 64))
    saved = {group: {name: t.cpu().clone() for name, t in each.items()} for group, each in one.tensors().items()}
    steps(one, range(64, 70))
    other = steps(trainer(**OPTIONS), range(3))
    other.load_tensors(saved)
    steps(other, range(64, 70))
    assert_equal_weights(weights(one.model), weights(other.model))
    assert one.metrics() == other.metrics()


def test_recording_leaves_everything_as_it_was():
    one, other = trainer(**OPTIONS), trainer(CPU, **OPTIONS)
    assert_equal_weights({name: t.cpu() for name, t in weights(one.model).items()}, weights(other.model))
    assert not any(tensor.any() for tensor in one.tensors()["optimizer"].values())
    assert one.metrics()["train/loss"] == 0


def test_the_first_steps_are_those_of_the_cpu():
    parts = {"train": {"precision": "float32"}, "task": OPTIONS["task"]}
    found, wanted = (steps(trainer(device, **parts), range(3)).metrics() for device in (DEVICE, CPU))
    for name, number in wanted.items():
        assert abs(found[name] - number) < 1e-3 * max(abs(number), 1), name


def test_bfloat16_in_the_vision_part_is_near_to_float32():
    found, wanted = (
        steps(trainer(train={"precision": precision}), range(3)).metrics()["train/loss"]
        for precision in ("bfloat16", "float32")
    )
    assert found != wanted
    assert abs(found - wanted) < 0.05 * wanted


def test_bootstrapped_steps_are_those_of_the_cpu_and_equal_in_two_runs():
    for target in ("answers", "weights"):
        parts = {"train": {"precision": "float32"}, "bootstrap": BootstrapConfig(future_shots=1, target=target)}
        found, again, wanted = (steps(trainer(device, **parts), range(3)) for device in (DEVICE, DEVICE, CPU))
        assert_equal_weights(weights(found.model), weights(again.model))
        found, wanted = found.metrics(), wanted.metrics()
        for name, number in wanted.items():
            assert abs(found[name] - number) < 1e-3 * max(abs(number), 1), name


def test_each_step_takes_the_rate_of_the_schedule():
    one = trainer(optimizer={"schedule": "noam", "warmup_steps": 3})
    for step in (0, 2, 5, 64, 130):
        one.train_step(step)
        assert abs(float(one.optimizer.rate_on_device) - one.optimizer.rate(step)) < 1e-7


def test_validation_is_that_of_the_cpu():
    one, other = (trainer(device, train={"precision": "float32"}) for device in (DEVICE, CPU))
    assert abs(one.validate()["validation/accuracy"] - other.validate()["validation/accuracy"]) < 0.11


def test_a_weight_that_is_nan_stops_the_run_and_moves_no_other():
    one = steps(trainer(), range(2))
    with torch.no_grad():
        one.model.sequence.output_projection.weight[0, 0] = torch.nan
    before = {name: p.clone() for name, p in one.model.named_parameters()}
    steps(one, range(2, 5))
    said = ""
    try:
        one.metrics()
    except NonFiniteError as error:
        said = str(error)
    assert "at step 2" in said
    for name, parameter in one.model.named_parameters():
        assert torch.equal(parameter, before[name]) or name == "sequence.output_projection.weight", name


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            sys.stdout.write(f"pass {name}\n")
