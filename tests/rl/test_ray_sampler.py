"""Actors on a Ray cluster of three nodes, which the tests start on this machine."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
import torch

from srwm.errors import InputError, RunError
from srwm.rl.ray_sampler import RemoteActor
from srwm.rl.trainer import RLTrainer

from . import toy_envs
from .toy_envs import ToyEnv, toy_config

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def cluster():
    """Start three nodes with one processor each; all are stopped whatever happens."""
    pytest.importorskip("ray", reason="runs where the extra `cluster` is installed")
    from ray import cloudpickle
    from ray.cluster_utils import Cluster

    # The nodes do not have the tests' modules, so the game itself is sent to them.
    cloudpickle.register_pickle_by_value(toy_envs)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    node = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for _ in range(2):
            cluster.add_node(**node)
        yield cluster
    finally:
        cluster.shutdown()
        cloudpickle.unregister_pickle_by_value(toy_envs)
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def make_envs(number, pinned):
    return ToyEnv(2, seed=2 * number)


def make_trainer(**train):
    config = toy_config(train={"actors": 3, "overlap": True, **train})
    return RLTrainer(config, CPU, make_envs=make_envs)


def test_an_address_without_a_cluster_is_a_sentence():
    pytest.importorskip("ray", reason="runs where the extra `cluster` is installed")
    with pytest.raises(InputError, match=r"train\.ray_address 127\.0\.0\.1:1: no Ray cluster answers there"):
        make_trainer(executor="ray", ray_address="127.0.0.1:1")


def test_two_learners_with_actors_on_a_cluster_learn_what_they_learn_from_actors_of_their_own(
    cluster, tmp_path, in_two_processes
):
    in_two_processes(Path(__file__).parent / "two_learners_on_ray.py", tmp_path, cluster.address)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first["ray"] == first["local"] == second["ray"] == second["local"]


def test_more_gpus_than_the_cluster_has_are_refused(cluster):
    with pytest.raises(InputError, match=r"train\.ray_gpus: .* 1\.5 GPUs in all, and the cluster has 0"):
        make_trainer(executor="ray", ray_address=cluster.address, ray_gpus=0.5)


@pytest.mark.parametrize("gpus", [-1.0, 1.5])
def test_parts_of_gpus_that_ray_does_not_give_are_refused(gpus):
    with pytest.raises(ValueError, match="ray_gpus"):
        toy_config(train={"ray_gpus": gpus})


def test_an_actor_without_the_gpu_that_it_is_to_have_is_a_sentence(monkeypatch):
    monkeypatch.setattr("srwm.rl.ray_sampler.has_gpu", lambda: False)
    with pytest.raises(RunError, match=r"train\.ray_gpus=0\.5, but PyTorch finds no GPU on .*; install a PyTorch"):
        RemoteActor(toy_config(train={"ray_gpus": 0.5}), 0, make_envs)


@pytest.fixture(scope="module", params=[{}, {"rollout_groups": 2, "batch_size": 3}], ids=["one group", "two groups"])
def on_ray(cluster, request):
    """One trainer for all tests, since every actor is a process that must import torch; each test goes on with it."""
    trainer = make_trainer(executor="ray", ray_address=cluster.address, **request.param)
    yield trainer
    trainer.close()


def test_weights_and_environments_are_bitwise_those_of_one_process_also_from_a_checkpoint(on_ray):
    here = make_trainer(rollout_groups=on_ray.config.train.rollout_groups, batch_size=on_ray.config.train.batch_size)
    here.train_step(0)
    on_ray.load_tensors({group: {n: t.clone() for n, t in each.items()} for group, each in here.tensors().items()})
    for trainer in (here, on_ray):
        for step in (1, 2):
            trainer.train_step(step)
    mine, theirs = here.tensors(), on_ray.tensors()
    assert mine.keys() == theirs.keys()
    for group in mine.keys() - {"rng"}:
        for name, tensor in mine[group].items():
            assert torch.equal(tensor, theirs[group][name]), f"{group}: {name}"
    assert here.metrics() == on_ray.metrics()


def test_a_dead_actor_is_replaced_and_the_run_goes_on(on_ray, caplog):
    import ray

    pid = ray.get(on_ray._sampler._actors[1].pid.remote())
    os.kill(pid, signal.SIGKILL)
    on_ray.train_step(3)
    assert "actor 1 has died" in caplog.text
    assert on_ray.metrics()["frames"] == 4 * on_ray.config.schedule.frames_per_iteration
    assert ray.get(on_ray._sampler._actors[1].pid.remote()) != pid
