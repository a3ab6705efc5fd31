"""The trainer: what is played and learnt from when, and that a run which was stopped goes on as if it had not been."""

import pytest
import torch

from srwm.errors import InputError
from srwm.rl.agent import Agent
from srwm.rl.trainer import RLTrainer
from srwm.runs.gradient_watch import NonFiniteError
from srwm.runs.processes import Processes

from .toy_games import assert_equal, copies, go_on_after_a_stop, make_toy_games, toy_config

CPU = torch.device("cpu")

# The shapes are checked by the tests of the parts; here thousands of calls would spend most of the time on it.
pytestmark = pytest.mark.usefixtures("as_installed")


def make_trainer(config=None, processes=None):
    config = config or toy_config()
    return RLTrainer(config, CPU, processes, make_games=make_toy_games(config))


def test_rounds_are_made_of_whole_batches():
    config = toy_config()  # 6 environments and batches of 4: two unrolls each make three batches
    assert (config.unrolls_per_round, config.updates_per_round, config.frames_per_round) == (2, 3, 60)
    assert config.rounds == 10


@pytest.mark.parametrize("overlap", [True, False])
def test_equal_runs_give_equal_bits(overlap):
    config = toy_config(train={"overlap": overlap})
    one, other = make_trainer(config), make_trainer(config)
    for trainer in (one, other):
        for step in range(3):
            trainer.train_step(step)
    assert_equal(one.tensors(), other.tensors())


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("stop", [1, 3, 4])
def test_a_run_goes_on_to_the_bit_wherever_it_was_stopped(overlap, stop):
    config = toy_config(train={"overlap": overlap})
    saved = go_on_after_a_stop(lambda: make_trainer(config), stop=stop, rounds=6)
    # Unrolls are saved only where some are still to be learnt from.
    assert ("pending" in saved) == (overlap and stop != 4)


@pytest.mark.parametrize("memory", ["srwm", "deltanet"])
def test_the_last_inputs_of_a_convolution_are_saved_with_the_states(memory):
    agent = {"memory": memory, "memory_options": {"convolution": 4}}
    saved = go_on_after_a_stop(lambda: make_trainer(toy_config(agent=agent)), stop=3, rounds=5)
    recent = [tensor for name, tensor in saved["actor-0"].items() if name.endswith("recent")]
    assert recent
    assert all(tensor.any() for tensor in recent)


def test_a_checkpoint_without_one_of_the_actors_is_refused():
    saved = copies(make_trainer())
    del saved["actor-1"]
    with pytest.raises(InputError, match="the checkpoint has no actor-1"):
        make_trainer().load_tensors(saved)


def test_what_is_played_while_the_agent_learns_is_one_round_older():
    for overlap, wanted in ((False, [1.0, 1.0]), (True, [1.0, 4.0])):
        # Three updates a round; the first round has nothing to learn from before it ends.
        trainer = make_trainer(toy_config(train={"overlap": overlap}))
        lags = []
        for step in range(3):
            trainer.train_step(step)
            numbers = trainer.metrics()
            # Where nothing was learnt from, nothing is said of it.
            if "train/lag" in numbers:
                lags.append(numbers["train/lag"])
        assert lags[:2] == wanted


def test_every_unroll_is_learnt_from_once(monkeypatch):
    config = toy_config(train={"overlap": False})
    trainer = make_trainer(config)
    seen = []
    monkeypatch.setattr(trainer._learner, "update", lambda rows, version: seen.append(rows.clone()))
    for step in range(2):
        trainer.train_step(step)
    for step in range(2):
        rows = torch.cat(seen[3 * step : 3 * step + 3])
        assert rows.sort().values.tolist() == list(range(12 * step, 12 * step + 12))
        assert rows.tolist() != sorted(rows.tolist())


@pytest.mark.parametrize("memory", ["srwm", "deltanet", "sr_deltanet", "fake_srwm", "lstm", "none"])
def test_the_learner_sees_what_the_actors_saw(memory):
    """Promise 26: from the stored state and frames it computes the actors' policy, across episode borders."""
    config = toy_config(agent={"memory": memory, "memory_options": {}}, train={"overlap": False})
    trainer = make_trainer(config)
    agent = Agent(config.agent)
    for step in range(3):
        agent.load_state_dict(trainer.model.state_dict())
        trainer.train_step(step)
        unroll = trainer._half(step)
        assert unroll.first[:, 1:].any()
        with torch.no_grad():
            answers, _ = agent(unroll.frames, unroll.rewards, unroll.first, unroll.state)
        log_pi = answers.logits[:, :-1].log_softmax(-1).gather(-1, unroll.actions[..., None]).squeeze(-1)
        torch.testing.assert_close(log_pi, unroll.log_mu, atol=1e-5, rtol=0)


def test_unrolls_follow_each_other():
    config = toy_config(train={"overlap": False})
    trainer = make_trainer(config)
    trainer.train_step(0)
    room = trainer._half(0)
    size = config.games.num_envs
    # Rows of the second unroll of each environment begin with the last frame of the first.
    for field in (room.frames, room.rewards, room.first):
        assert torch.equal(field[:size, -1], field[size:, 0])


def test_an_agent_learns_which_actions_bring_rewards():
    config = toy_config(games={"num_envs": 16}, train={"total_frames": 2400, "batch_size": 16})
    trainer = make_trainer(config)
    returns = []
    for step in range(config.rounds):
        trainer.train_step(step)
        if step in (1, config.rounds - 11, config.rounds - 1):
            returns.append(trainer.metrics()["train/return/maze"])
    # By chance one action in fifteen is right; two of them take turns, so half can be had without looking.
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


def test_a_policy_that_tries_nothing_is_noticed():
    trainer = make_trainer()
    assert trainer.notice(1, {"train/entropy": 1.0}) is None
    assert "always does the same" in trainer.notice(1, {"train/entropy": 0.001})


@pytest.mark.parametrize("name", ["actors", "batch_size"])
def test_what_processes_cannot_share_is_refused(name):
    config = toy_config(train={name: 3, "actors": 3} if name == "actors" else {name: 3}, games={"num_envs": 6})
    with pytest.raises(InputError, match=f"{name}=3 cannot be shared by 2 processes"):
        make_trainer(config, Processes(rank=0, count=2))
