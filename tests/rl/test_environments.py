"""Pools of ProcGen behind one actor, and the statistics of their episodes."""

import numpy as np
import pytest
import torch

from srwm.errors import InputError
from srwm.rl.config import GamesConfig
from srwm.rl.environments import ProcgenTrainingEnv
from srwm.rl.episode_statistics import EpisodeStatistics

CONFIG = GamesConfig(names=("bigfish", "maze"), num_envs=6)


def play(games, steps, seed=0):
    """Step games with random actions; give everything that was seen."""
    random = np.random.default_rng(seed)
    seen = []
    for _ in range(steps):
        games.step_async(random.integers(15, size=len(games.frames)))
        games.step_wait()
        seen += [games.frames.clone(), games.rewards.clone(), games.first.clone()]
    return seen


@pytest.mark.usefixtures("library")
class TestProcgenEnv:
    def test_threads_change_nothing(self):
        alone = play(ProcgenTrainingEnv(CONFIG, 6, seed=1), 40)
        threaded = play(ProcgenTrainingEnv(CONFIG, 6, seed=1, threads=3), 40)
        assert all(map(torch.equal, alone, threaded))

    def test_another_seed_plays_other_levels(self):
        one, other = ProcgenTrainingEnv(CONFIG, 6, seed=1), ProcgenTrainingEnv(CONFIG, 6, seed=2)
        assert not torch.equal(one.frames, other.frames)

    def test_environments_play_the_games_in_turn(self):
        games = ProcgenTrainingEnv(CONFIG, 6, seed=0)
        names = [games._pool.options.game_of(env) for env in range(6)]
        assert names == ["bigfish", "maze"] * 3

    def test_saved_games_go_on_exactly(self):
        games, again = ProcgenTrainingEnv(CONFIG, 6, seed=3), ProcgenTrainingEnv(CONFIG, 6, seed=4)
        play(games, 30)
        again.load_tensors({name: tensor.clone() for name, tensor in games.tensors().items()})
        assert torch.equal(games.frames, again.frames)
        assert torch.equal(games.rewards, again.rewards)
        assert all(map(torch.equal, play(games, 30, seed=5), play(again, 30, seed=5)))

    def test_the_state_of_another_number_of_games_is_refused(self):
        saved = ProcgenTrainingEnv(CONFIG, 4, seed=0).tensors()
        with pytest.raises(InputError, match="expected the state of 6 games, got 4 from the checkpoint"):
            ProcgenTrainingEnv(CONFIG, 6, seed=0).load_tensors(saved)


def test_an_episode_ends_with_the_reward_that_comes_with_the_next_ones_first_frame():
    episodes = EpisodeStatistics(3, games=2)
    add(episodes, [1.0, 2.0, 4.0], [False, False, True])
    add(episodes, [1.0, 2.0, 4.0], [True, False, False])
    # Environments 0 and 2 play the first game, with returns 2 after two steps and 4 after one.
    np.testing.assert_array_equal(episodes.take(), [[2, 6, 3], [0, 0, 0]])
    add(episodes, [1.0, 2.0, 4.0], [False, True, True])
    np.testing.assert_array_equal(episodes.take(), [[1, 8, 2], [1, 6, 3]])


def test_sums_of_episodes_can_be_saved():
    episodes, again = EpisodeStatistics(2, games=1), EpisodeStatistics(2, games=1)
    add(episodes, [1.0, 2.0], [True, False])
    again.load_tensors(episodes.tensors())
    for each in (episodes, again):
        add(each, [1.0, 1.0], [False, True])
    np.testing.assert_array_equal(episodes.take(), again.take())


def add(episodes, rewards, first):
    episodes.add(np.array(rewards, dtype=np.float32), np.array(first))
