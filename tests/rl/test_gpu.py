"""Agents on a GPU: actions and updates in CUDA graphs; runs under pytest, and as `python tests/rl/test_gpu.py`.

With names of tests behind it, only those.
"""

import functools
import itertools
import sys
from pathlib import Path

import torch

try:
    import pytest
except ImportError:  # The machine with the GPU may have little more than torch and Triton.
    pytest = None

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from rl.toy_envs import ToyEnv, toy_config
from srwm.nn import named_tensors
from srwm.rl.agent import Agent
from srwm.rl.ray_sampler import RemoteActor
from srwm.rl.rollout_buffer import RolloutBuffer
from srwm.rl.sampler import LocalSampler
from srwm.rl.trainer import RLTrainer
from srwm.runs.devices import set_deterministic, set_tf32
from srwm.vision.max_pool import max_pool_bias

pytestmark = pytest.mark.gpu if pytest else None

DEVICE, CPU = torch.device("cuda"), torch.device("cpu")
MEMORIES = ("srwm", "deltanet", "sr_deltanet", "fake_srwm", "lstm", "none")


class PinnedEnv(ToyEnv):
    """The toy with frames where a GPU can fetch them."""

    def __init__(self, number, seed):
        super().__init__(number, seed)
        for name in ("frames", "rewards", "first"):
            setattr(self, name, getattr(self, name).pin_memory())


STAGGERED = {"rollout_groups": 3, "batch_size": 2}
"""Unrolls of two environments end with each phase; without it all end together."""
DEEPER = {**STAGGERED, "pipeline_depth": 2}
"""And a phase is played before the updates from the one before the last are done."""


def trainer(device=DEVICE, memory="srwm", **train):
    set_deterministic(True)
    config = toy_config(agent={"memory": memory, "memory_options": {}}, train=train)
    size = config.schedule.envs_per_actor
    games = PinnedEnv if device.type == "cuda" else ToyEnv
    return RLTrainer(config, device, make_envs=lambda number, pinned: games(size, seed=number * size))


def iterations(one, numbers):
    for number in numbers:
        one.train_step(number)
    return one


def copies(one):
    return {group: {name: t.cpu().clone() for name, t in each.items()} for group, each in one.tensors().items()}


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for group in first.keys() - {"rng"}:
        for name, tensor in first[group].items():
            assert torch.equal(tensor, second[group][name]), f"{group}: {name}"


def test_runs_are_bitwise_reproducible():
    for precision in ("float32", "tf32", "bfloat16"):
        for overlap, groups in itertools.product((True, False), ({}, STAGGERED)):
            one, other = (
                iterations(trainer(precision=precision, overlap=overlap, **groups), range(5)) for _ in range(2)
            )
            assert_equal(copies(one), copies(other))


def test_every_memory_plays_and_learns():
    for memory in MEMORIES:
        one = iterations(trainer(memory=memory), range(4))
        assert torch.isfinite(torch.tensor(one.metrics()["train/loss"]))


def test_the_first_iterations_are_those_of_the_cpu():
    for memory, groups in itertools.product(MEMORIES, ({}, STAGGERED)):
        found, expected = (
            iterations(trainer(device, memory, precision="float32", overlap=False, **groups), range(2)).metrics()
            for device in (DEVICE, CPU)
        )
        assert found.keys() == expected.keys()
        for name, number in expected.items():
            assert abs(found[name] - number) < 2e-3 * max(abs(number), 1), f"{memory}: {name}"


def test_resuming_from_its_tensors_is_bit_exact():
    for groups in ({}, STAGGERED):
        one = iterations(trainer(**groups), range(3))
        saved = copies(one)
        assert "pending" in saved
        iterations(one, range(3, 6))
        other = iterations(trainer(**groups), range(2))
        other.load_tensors(saved)
        iterations(other, range(3, 6))
        assert_equal(copies(one), copies(other))


def test_a_deeper_pipeline_is_bitwise_reproducible_and_that_of_the_cpu():
    one, other = (iterations(trainer(precision="bfloat16", **DEEPER), range(8)) for _ in range(2))
    assert_equal(copies(one), copies(other))
    found, expected = (
        iterations(trainer(device, precision="float32", **DEEPER), range(2)).metrics() for device in (DEVICE, CPU)
    )
    for name, number in expected.items():
        assert abs(found[name] - number) < 2e-3 * max(abs(number), 1), name


def test_resuming_a_deeper_pipeline_is_bit_exact():
    one = iterations(trainer(**DEEPER), range(3))
    saved = copies(one)
    assert "policy" in saved
    iterations(one, range(3, 6))
    other = iterations(trainer(**DEEPER), range(2))
    other.load_tensors(saved)
    iterations(other, range(3, 6))
    assert_equal(copies(one), copies(other))


def test_an_actor_of_a_cluster_plays_on_a_gpu_what_one_of_this_process_plays():
    train = {"ray_gpus": 0.5, "actors": 1, "precision": "float32"}
    config = toy_config(train=train)
    set_tf32(False)
    games = functools.partial(PinnedEnv, config.schedule.envs_per_actor)
    remote = RemoteActor(config, 0, lambda number, pinned: games(0))
    agent = Agent(config.agent).to(DEVICE)
    weights = {name: tensor.cpu().numpy() for name, tensor in agent.state_dict().items()}
    buffer = RolloutBuffer(config.schedule, 1, agent.initial_state(1), DEVICE, phases_ahead=1)
    sampler = LocalSampler(config, [0], buffer, DEVICE, make_envs=lambda number, pinned: games(0))
    for phase in range(2):
        found = remote.play(weights, phase)
        sampler.start(agent, phase)
        sampler.finish()
        sampler.complete()
    order = torch.arange(config.schedule.unrolls_per_phase(1), device=DEVICE)
    expected = named_tensors(buffer.unrolls(*config.schedule.locate(1, order, actors=1)))
    for name, tensor in expected:
        assert torch.equal(torch.from_numpy(found[name]), tensor.cpu()), name


def test_capturing_cuda_graphs_leaves_everything_as_it_was():
    one, other = copies(trainer()), copies(trainer(CPU))
    assert_equal({"weights": one["weights"]}, {"weights": other["weights"]})
    assert not any(tensor.any() for tensor in one["optimizer"].values())
    assert not any(tensor.any() for name, tensor in one["actor-0"].items() if name.startswith("state"))


def test_the_pool_and_its_gradient_are_those_of_pytorch():
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.randn(7, 16, 64, 64, device=DEVICE, dtype=dtype).contiguous(memory_format=torch.channels_last)
        bias = torch.randn(16, device=DEVICE)
        x.requires_grad_()
        bias.requires_grad_()
        y = max_pool_bias(x, bias)
        expected = torch.nn.functional.max_pool2d(x.detach().float(), 3, 2, 1) + bias.detach()[:, None, None]
        assert torch.allclose(y.float(), expected, atol=0.05 if dtype == torch.bfloat16 else 1e-6)
        dy = torch.randn_like(y)
        dx, dbias = torch.autograd.grad(y, (x, bias), dy)
        reference = x.detach().cpu().float().requires_grad_()
        pooled = torch.nn.functional.max_pool2d(reference, 3, 2, 1)
        (expected_dx,) = torch.autograd.grad(pooled, reference, dy.cpu().float())
        assert torch.allclose(dx.cpu().float(), expected_dx, atol=0.05 if dtype == torch.bfloat16 else 1e-6)
        assert torch.allclose(dbias.float(), dy.float().sum((0, 2, 3)), rtol=2e-2, atol=1.0)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_") and (not sys.argv[1:] or name in sys.argv[1:]):
            test()
            sys.stdout.write(f"pass {name}\n")
