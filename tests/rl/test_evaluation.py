"""Testing an agent on levels: each once, or drawn at random."""

import numpy as np
import pytest
import torch

from srwm.rl.agent import Agent
from srwm.rl.evaluation import RandomEpisodes, SplitResult, evaluate, run_episodes
from srwm.rl.procgen import LevelRange, Observation
from srwm.rl.procgen.paper import Score
from srwm.rl.tables import returns_table

from .toy_envs import toy_config


class CountDown:
    """Environment n ends after n + 2 steps; a step brings the action's number as reward."""

    def __init__(self, number):
        self.num_envs = number
        self.returns, self.lengths = np.zeros(number), np.zeros(number, np.int64)
        self.finished = np.zeros(number, np.bool_)
        self.frames = np.zeros((number, 64, 64, 3), np.uint8)
        self.actions = []

    def observe(self):
        self.frames[:] = (10 * self.lengths.max() + np.arange(self.num_envs))[:, None, None, None]
        return Observation(self.frames, np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, np.bool_))

    def act(self, actions):
        going = ~self.finished
        self.actions.append(actions.copy())
        self.returns[going] += actions[going]
        self.lengths[going] += 1
        self.finished = self.lengths >= np.arange(self.num_envs) + 2


def test_actions_are_greedy_and_each_environment_keeps_its_own_state():
    torch.manual_seed(0)
    agent = Agent(toy_config().agent)
    envs = CountDown(4)
    run_episodes(agent, envs)
    assert envs.lengths.tolist() == [2, 3, 4, 5]
    # Each environment by itself gives the same, so none saw another's state or frame.
    for env in range(4):
        state, first = agent.initial_state(1), torch.zeros(1, 1, dtype=torch.bool)
        for step in range(env + 2):
            frames = torch.full((1, 1, 64, 64, 3), 10 * step + env, dtype=torch.uint8)
            output, state = agent(frames, torch.zeros(1, 1), first, state)
            assert envs.actions[step][env] == output.logits.argmax()


@pytest.mark.usefixtures("library")
class TestOnLevels:
    def test_every_level_is_played_once_and_scored(self):
        torch.manual_seed(0)
        agent = Agent(toy_config().agent)
        splits = {"train": LevelRange(0, 3), "test-1": LevelRange(1000, 2)}
        tested = evaluate(agent, ("fruitbot", "starpilot"), "easy", splits, threads=1)
        assert [len(returns) for returns in tested["train"].returns.values()] == [3, 3]
        assert [len(returns) for returns in tested["test-1"].returns.values()] == [2, 2]
        means = tested["train"].means
        expected = 50 * ((means["fruitbot"] + 1.5) / 33.9 + (means["starpilot"] - 2.5) / 61.5)
        assert tested["train"].score == pytest.approx(expected)
        assert tested == evaluate(agent, ("fruitbot", "starpilot"), "easy", splits, threads=2)

    def test_episodes_on_levels_drawn_at_random(self):
        torch.manual_seed(0)
        agent = Agent(toy_config().agent)
        splits = {"train": LevelRange(0, 200)}
        one, again, other = (
            evaluate(agent, ("starpilot",), "easy", splits, random_episodes=3, seed=seed, threads=1)
            for seed in (0, 0, 1)
        )
        assert one == again
        assert one != other
        assert len(one["train"].returns["starpilot"]) == 3

    def test_nothing_counts_after_an_episode_has_ended(self):
        with RandomEpisodes(("starpilot",), "easy", LevelRange(0, 10), 2) as play:
            play.finished[0] = True
            for _ in range(5):
                play.act(np.full(2, 4, np.int32))
            assert play.lengths.tolist() == [0, 5]
            assert play.returns[0] == 0


def test_the_paper_stands_beside_ours(capsys):
    from rich.console import Console

    each = {"levels": [0, 2], "means": {"maze": 5.0, "heist": 3.0}, "score": 12.0}
    tested = {"train": each, "test-1": each, "test-2": {**each, "means": {"maze": 7.0, "heist": 3.0}, "score": 14.0}}
    paper = {"test": {"maze": Score(3.3, 0.6), "score": Score(38.0, 4.1)}}
    Console(width=120).print(returns_table("title", tested, paper))
    out = capsys.readouterr().out
    for text in ("6.0 (1.4)", "3.3 (0.6)", "13.0 (1.4)", "38.0 (4.1)", "12.0"):
        assert text in out


def test_means_are_over_episodes():
    assert SplitResult((0, 2), {"maze": [0.0, 10.0]}, {"maze": 5.0}, 0.0).means == {"maze": 5.0}
