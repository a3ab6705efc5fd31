import numpy as np
import pytest

from srwm.rl.procgen import Pool, PoolOptions, VideoPool

from .playing import assert_same, play, random_actions

pytestmark = pytest.mark.usefixtures("library")

OPTIONS = PoolOptions(games=("starpilot", "maze"), num_envs=2)


def test_large_frames_show_what_the_small_ones_show():
    with VideoPool(OPTIONS) as pool:
        play(pool, random_actions(30, 2))
        frames = pool.observe().frames.astype(float)
        large = pool.large_frames
        assert (large.shape, large.dtype) == ((2, 512, 512, 3), np.uint8)
        shrunk = large.reshape(2, 64, 8, 64, 8, 3).mean(axis=(2, 4))
        for one, other in zip(shrunk, frames, strict=True):
            assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.9


def test_large_frames_change_nothing_else():
    actions = random_actions(30, 2)
    with VideoPool(OPTIONS) as pool, Pool(OPTIONS) as other:
        assert_same(play(pool, actions), play(other, actions))


def test_a_state_of_a_plain_pool_can_be_shown():
    actions = random_actions(40, 2)
    with VideoPool(OPTIONS) as pool, Pool(OPTIONS) as other:
        play(other, actions[:20])
        before = pool.large_frames.copy()
        pool.set_state(other.get_state())
        assert (pool.large_frames != before).any()
        assert_same(play(pool, actions[20:]), play(other, actions[20:]))
