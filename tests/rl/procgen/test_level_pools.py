import numpy as np
import pytest

from srwm.errors import InputError
from srwm.rl.procgen import LevelPools, LevelRange, Pool, PoolOptions

from .playing import random_actions

pytestmark = pytest.mark.usefixtures("library")

GAMES = ("starpilot", "leaper")
LEVELS = LevelRange(1000, 5)
ACTIONS = random_actions(2000, 10)


def play_to_the_end(play):
    """Step until all have finished; gives how many steps that took."""
    for step, actions in enumerate(ACTIONS):
        if play.finished.all():
            return step
        play.act(actions)
    raise AssertionError("the games do not end")


@pytest.fixture(scope="module")
def played(library):
    with LevelPools(GAMES, LEVELS) as play:
        play_to_the_end(play)
    return play


def test_every_level_is_played_once_by_every_game(played):
    played_by = {(played.game_of(env), played.level_of(env)) for env in range(played.num_envs)}
    assert played_by == {(game, level) for game in GAMES for level in range(1000, 1005)}
    assert played.num_envs == len(played_by)


def test_each_return_is_that_of_an_episode_on_its_level(played):
    for env in range(10):
        options = PoolOptions(games=(GAMES[env % 2],), num_envs=1, start_level=1000 + env // 2, num_levels=1)
        total, steps = 0.0, 0
        with Pool(options) as pool:
            while True:
                pool.act(ACTIONS[steps, env : env + 1])
                steps += 1
                _, rewards, first = pool.observe()
                assert pool.info.level_seed[0] == 1000 + env // 2
                total += rewards[0]
                if first[0]:
                    break
        assert (played.returns[env], played.lengths[env]) == (total, steps)


def test_returns_can_be_taken_apart_by_game(played):
    np.testing.assert_array_equal(played.returns_of("starpilot"), played.returns[0::2])
    np.testing.assert_array_equal(played.returns_of("leaper"), played.returns[1::2])
    assert played.returns.any()


def test_what_is_finished_stays_finished():
    with LevelPools(GAMES, LEVELS) as play:
        frames, rewards, first = play.observe()
        assert first.all()
        assert not play.finished.any()
        while not play.finished.any():
            play.act(ACTIONS[play.lengths.max()])
        done = play.finished.copy()
        np.testing.assert_array_equal(first, done)
        before = [array[done].copy() for array in (frames, play.returns, play.lengths)]
        for actions in ACTIONS[:20]:
            play.act(actions)
            assert not rewards[done].any()
            assert not first[done].any()
        for array, kept in zip((frames, play.returns, play.lengths), before, strict=True):
            np.testing.assert_array_equal(array[done], kept)
        assert (play.lengths[~done] > before[2].max()).any()


def test_threads_change_nothing(played):
    with LevelPools(GAMES, LEVELS, threads=3) as play:
        play_to_the_end(play)
    np.testing.assert_array_equal(play.returns, played.returns)
    np.testing.assert_array_equal(play.lengths, played.lengths)


def test_the_distribution_is_taken_from_the_options():
    options = PoolOptions(games=("maze",), num_envs=1, distribution="memory")
    with (
        LevelPools(("maze",), LEVELS, options) as play,
        Pool(PoolOptions(("maze",), 1, "memory", start_level=1003, num_levels=1)) as pool,
    ):
        np.testing.assert_array_equal(play.observe().frames[3], pool.observe().frames[0])


def test_a_whole_split_fits():
    with LevelPools(("heist",), LevelRange(1200, 200), threads=2) as play:
        assert len(np.unique(play.observe().frames, axis=0)) == 200
        play.act(np.zeros(200, np.int32))
        assert play.lengths.tolist() == [1] * 200


@pytest.mark.parametrize(
    ("games", "options", "threads", "words"),
    [
        (("bigfish",), PoolOptions(("maze",), 1, "memory"), 1, "bigfish has no memory distribution"),
        ((), None, 1, "games: expected a tuple"),
        (("maze",), None, 0, "threads: expected at least 1, got 0"),
    ],
)
def test_bad_options_are_refused(games, options, threads, words):
    with pytest.raises(InputError, match=words):
        LevelPools(games, LEVELS, options, threads=threads)


def test_closed_pools_and_wrong_actions_are_refused():
    with LevelPools(("maze",), LEVELS) as play, pytest.raises(InputError, match=r"expected shape \[5\], got \[4\]"):
        play.act(np.zeros(4, np.int32))
    for use in (play.observe, lambda: play.act(np.zeros(5, np.int32))):
        with pytest.raises(InputError, match="these pools of ProcGen games are closed"):
            use()


def test_a_wrong_action_is_refused_from_within_a_thread():
    with LevelPools(("maze",), LEVELS, threads=2) as play, pytest.raises(InputError, match="got 15"):
        play.act(np.full(5, 15))
