"""Rounds of several turns: the unrolls of one group of environments end with each, and are learnt from at once."""

import pytest
import torch

from srwm.rl.agent import Agent
from srwm.rl.trainer import RLTrainer

from .toy_games import ToyGames, go_on_after_a_stop, toy_config

CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("as_installed")


class CountingGames(ToyGames):
    """The toy, with the number of the environment and of its step in two pixels of the frame."""

    def _draw(self):
        super()._draw()
        self.frames[:, 0, 0, 0] = self._env.to(torch.uint8)
        self.frames[:, 0, 1, 0] = self._step.to(torch.uint8)


def config_of(*, memory="srwm", optimizer=None, **train):
    """Three turns of 1, 2 and 2 steps; each ends four unrolls, two of each actor, which make a batch."""
    return toy_config(
        games={"num_envs": 12},
        agent={"memory": memory, "memory_options": {}},
        optimizer=optimizer,
        train={"turns": 3, "batch_size": 4} | train,
    )


def make_trainer(config):
    size = config.envs_per_actor
    return RLTrainer(config, CPU, make_games=lambda number, pinned: CountingGames(size, seed=number * size))


def unrolls_of_turns(trainer, rounds, monkeypatch):
    """What ends with each turn."""
    found = []
    learn = trainer._learn

    def watched(turn):
        found.append(trainer._half(turn)._replace(frames=trainer._half(turn).frames.clone()))
        learn(turn)

    monkeypatch.setattr(trainer, "_learn", watched)
    for step in rounds:
        trainer.train_step(step)
    return found


def test_turns_are_as_long_as_each_other_as_nearly_as_can_be():
    assert config_of().ends_of_turns == [1, 3, 5]
    assert toy_config().ends_of_turns == [5]


@pytest.mark.parametrize(
    ("num_envs", "batch_size", "turns"),
    # Alike for each of two actors, whole batches, and not more turns than an unroll has steps (5).
    [(12, 4, 3), (12, 6, 2), (24, 4, 3), (24, 2, 4), (12, 8, 1), (10, 4, 1)],
)
def test_as_many_turns_as_updates_where_they_come_out_even(num_envs, batch_size, turns):
    assert toy_config(games={"num_envs": num_envs}, train={"turns": None, "batch_size": batch_size}).turns == turns


@pytest.mark.parametrize("overlap", [True, False])
def test_one_group_ends_with_each_turn_and_goes_on_where_it_ended(overlap, monkeypatch):
    config = config_of(overlap=overlap, checkpoint_every=100)
    found = unrolls_of_turns(make_trainer(config), range(3), monkeypatch)
    assert len(found) == 9 - overlap
    for turn, unroll in enumerate(found):
        environments, steps = unroll.frames[:, :, 0, 0, 0].long(), unroll.frames[:, :, 0, 1, 0].long()
        group = 2 * (turn % 3)
        assert environments[:, 0].tolist() == [group, group + 1, group + 6, group + 7]
        # Four steps were played before the first turn: so far is the first group before it ends, after a step.
        first = turn // 3 * 5 + 4 + [1, 3, 5][turn % 3] - 5
        assert steps.tolist() == [list(range(first, first + 6))] * 4


@pytest.mark.parametrize("memory", ["srwm", "deltanet", "sr_deltanet", "fake_srwm", "lstm", "none"])
def test_the_learner_sees_what_the_actors_saw(memory):
    """Promise 26, where unrolls begin in the middle of rounds; the weights stay, so that one agent played all of it."""
    config = config_of(memory=memory, overlap=False, optimizer={"learning_rate": 0.0})
    trainer = make_trainer(config)
    agent = Agent(config.agent)
    agent.load_state_dict(trainer.model.state_dict())
    for step in range(3):
        trainer.train_step(step)
        for unroll in (trainer._half(3 * step + 1), trainer._half(3 * step + 2)):
            with torch.no_grad():
                answers, _ = agent(unroll.frames, unroll.rewards, unroll.first, unroll.state)
            log_pi = answers.logits[:, :-1].log_softmax(-1).gather(-1, unroll.actions[..., None]).squeeze(-1)
            torch.testing.assert_close(log_pi, unroll.log_mu, atol=1e-5, rtol=0)


def test_what_is_learnt_from_is_less_old_than_where_all_unrolls_end_together():
    lags = {}
    for turns in (1, 3):
        for overlap in (False, True):
            trainer = make_trainer(config_of(turns=turns, overlap=overlap, checkpoint_every=100))
            for step in range(4):
                trainer.train_step(step)
                numbers = trainer.metrics()
            lags[turns, overlap] = numbers["train/lag"]
    # Three updates a round. Together: 0 to 2 updates old, and one round older where played meanwhile. In turns: an
    # unroll lasts three turns, so 0 to 2 as well, and one turn older.
    assert lags == {(1, False): 1.0, (1, True): 4.0, (3, False): 1.0, (3, True): 2.0}


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("stop", [1, 3, 4, 5])
def test_a_run_goes_on_to_the_bit_wherever_it_was_stopped(overlap, stop):
    config = config_of(overlap=overlap)  # a checkpoint is due every four rounds
    saved = go_on_after_a_stop(lambda: make_trainer(config), stop=stop, rounds=7)
    assert ("pending" in saved) == (overlap and stop != 4)
    # Where a checkpoint is due, unrolls that have not ended are given up.
    assert any(name.startswith("recent.") for name in saved["actor-0"]) == (stop != 4)


def test_unrolls_begin_anew_after_a_checkpoint(monkeypatch):
    config = config_of(overlap=False, checkpoint_every=2)
    found = unrolls_of_turns(make_trainer(config), range(4), monkeypatch)
    starts = [unroll.frames[0, 0, 0, 1, 0].item() for unroll in found]
    # Four steps before the first turn; after two rounds, 14 steps, four more.
    assert starts == [0, 2, 4, 5, 7, 9, 14, 16, 18, 19, 21, 23]


def test_an_agent_learns_which_actions_bring_rewards():
    config = toy_config(
        games={"num_envs": 16}, train={"total_frames": 2400, "batch_size": 4, "turns": 4, "checkpoint_every": 10}
    )
    trainer = make_trainer(config)
    for step in range(config.rounds):
        trainer.train_step(step)
        if step == 1:
            assert trainer.metrics()["train/return/maze"] < 1.0
        elif step == config.rounds - 6:
            trainer.metrics()
    assert trainer.metrics()["train/return/maze"] > 2.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"turns": 4}, r"turns=4 does not divide the environments of an actor \(6\)"),
        ({"turns": 6}, "turns=6 gives 2 unrolls a turn, no multiple of batch_size=4"),
        ({"turns": 6, "batch_size": 1}, r"turns=6 is more than an unroll has steps \(5\)"),
        ({"turns": 0}, "turns=0; wanted at least 1"),
    ],
)
def test_turns_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        config_of(**changes)
