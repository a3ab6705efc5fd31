"""The trainer: what is played and learnt from when, and bit-exact resume."""

import pytest
import torch

from srwm.errors import InputError
from srwm.rl.agent import Agent
from srwm.rl.trainer import RLTrainer
from srwm.runs.gradient_watch import NonFiniteError
from srwm.runs.processes import Processes

from .toy_envs import (
    assert_equal,
    assert_learner_computes_the_behaviour_policy,
    copies,
    make_toy_envs,
    resume_after_stop,
    toy_config,
    unrolls_learnt_from,
)

CPU = torch.device("cpu")

# The shapes are checked by the tests of the parts; here thousands of calls would spend most of the time on it.
pytestmark = pytest.mark.usefixtures("as_installed")


def make_trainer(config=None, processes=None):
    config = config or toy_config()
    return RLTrainer(config, CPU, processes, make_envs=make_toy_envs(config))


def test_iterations_are_made_of_whole_batches():
    config = toy_config()  # 6 environments and batches of 4: two unrolls each make three batches
    schedule = config.schedule
    assert (schedule.unrolls_per_iteration, schedule.updates_per_iteration, schedule.frames_per_iteration) == (2, 3, 60)
    assert config.iterations == 10


@pytest.mark.parametrize("overlap", [True, False])
def test_runs_are_bitwise_reproducible(overlap):
    config = toy_config(train={"overlap": overlap})
    one, other = make_trainer(config), make_trainer(config)
    for trainer in (one, other):
        for step in range(3):
            trainer.train_step(step)
    assert_equal(one.tensors(), other.tensors())


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("stop", [1, 3, 4])
def test_resuming_is_bit_exact_wherever_a_run_was_stopped(overlap, stop):
    config = toy_config(train={"overlap": overlap})
    saved = resume_after_stop(lambda: make_trainer(config), stop=stop, iterations=6)
    # Unrolls are saved only where some are still to be learnt from.
    assert ("pending" in saved) == (overlap and stop != 4)
    assert any(name.startswith("unrolls.") for name in saved["actor-0"]) == (overlap and stop != 4)


def test_a_checkpoint_without_one_of_the_actors_is_refused():
    saved = copies(make_trainer())
    del saved["actor-1"]
    with pytest.raises(InputError, match="the checkpoint has no actor-1"):
        make_trainer().load_tensors(saved)


def test_what_is_played_while_the_agent_learns_has_a_policy_lag_of_one_iteration_more():
    for overlap, expected in ((False, [1.0, 1.0]), (True, [1.0, 4.0])):
        # Three updates an iteration; the first one has nothing to learn from before it ends.
        trainer = make_trainer(toy_config(train={"overlap": overlap}))
        lags = []
        for step in range(3):
            trainer.train_step(step)
            numbers = trainer.metrics()
            # Where nothing was learnt from, nothing is said of it.
            if "train/policy_lag" in numbers:
                lags.append(numbers["train/policy_lag"])
        assert lags[:2] == expected


def test_every_unroll_is_learnt_from_once(monkeypatch):
    config = toy_config(train={"overlap": False})
    trainer = make_trainer(config)
    seen = []
    monkeypatch.setattr(
        trainer._learner, "update", lambda envs, ends, version: seen.append(torch.stack([envs, ends], dim=-1))
    )
    for step in range(2):
        trainer.train_step(step)
    for step in range(2):
        unrolls = torch.cat(seen[3 * step : 3 * step + 3]).tolist()
        in_order = [[env, end] for env in range(6) for end in (10 * step + 5, 10 * step + 10)]
        assert sorted(unrolls) == in_order
        assert unrolls != in_order


@pytest.mark.parametrize("memory", ["srwm", "deltanet", "sr_deltanet", "fake_srwm", "lstm", "none"])
def test_the_learner_observes_what_the_actors_observed(memory, monkeypatch):
    config = toy_config(agent={"memory": memory, "memory_options": {}}, train={"overlap": False})
    trainer = make_trainer(config)
    agent = Agent(config.agent)
    for step in range(3):
        agent.load_state_dict(trainer.model.state_dict())
        with monkeypatch.context() as patch:
            (unroll,) = unrolls_learnt_from(trainer, [step], patch)
        assert unroll.first[:, 1:].any()
        assert_learner_computes_the_behaviour_policy(agent, unroll)


def test_unrolls_follow_each_other(monkeypatch):
    config = toy_config(train={"overlap": False})
    (unroll,) = unrolls_learnt_from(make_trainer(config), [0], monkeypatch)
    size = config.games.num_envs
    # Rows of the second unroll of each environment begin with the last frame of the first.
    for field in (unroll.frames, unroll.rewards, unroll.first):
        assert torch.equal(field[:size, -1], field[size:, 0])


def test_an_agent_learns_which_actions_bring_rewards():
    config = toy_config(games={"num_envs": 16}, train={"total_frames": 2400, "batch_size": 16})
    trainer = make_trainer(config)
    returns = []
    for step in range(config.iterations):
        trainer.train_step(step)
        if step in (1, config.iterations - 11, config.iterations - 1):
            returns.append(trainer.metrics()["train/return/maze"])
    # By chance one action in fifteen is right; two of them alternate, so half can be had without looking.
    assert returns[0] < 1.0
    assert returns[-1] > 2.0


def test_metrics_count_frames_and_episodes():
    trainer = make_trainer(toy_config(train={"overlap": False}))
    for step in range(2):
        trainer.train_step(step)
    numbers = trainer.metrics()
    assert numbers["frames"] == 120
    # Episodes of environments 0 to 5 last 4, 5, 6, 7, 4 and 5 steps, and each played 20.
    assert numbers["train/episodes"] == 5 + 4 + 3 + 2 + 5 + 4
    assert numbers["train/length/maze"] == pytest.approx((20 + 20 + 18 + 14 + 20 + 20) / 23)
    assert trainer.metrics()["train/episodes"] == 0


def test_a_gradient_that_is_not_finite_stops_the_run_and_changes_nothing():
    trainer = make_trainer(toy_config(train={"overlap": False}))
    trainer.train_step(0)
    before = copies(trainer)
    trainer.model.policy.bias.register_hook(lambda gradient: gradient * torch.nan)
    trainer.train_step(1)
    assert_equal({"weights": before["weights"]}, {"weights": trainer.tensors()["weights"]})
    with pytest.raises(NonFiniteError, match=r"policy\.bias"):
        trainer.metrics()


def test_a_policy_that_explores_nothing_is_noticed():
    trainer = make_trainer()
    assert trainer.notice(1, {"train/entropy": 1.0}) is None
    assert "always does the same" in trainer.notice(1, {"train/entropy": 0.001})


@pytest.mark.parametrize("name", ["actors", "batch_size"])
def test_what_processes_cannot_share_is_refused(name):
    config = toy_config(train={name: 3, "actors": 3} if name == "actors" else {name: 3}, games={"num_envs": 6})
    with pytest.raises(InputError, match=f"{name}: expected a multiple of the 2 processes, got 3"):
        make_trainer(config, Processes(rank=0, count=2))
