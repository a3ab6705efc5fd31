"""Plays pools with random actions that are the same every time."""

import numpy as np

from srwm.rl.procgen import FORCE_RESET, NUM_ACTIONS


def random_actions(steps, num_envs, *, seed=0, reset_share=0.0):
    """Actions [steps, num_envs]; a share of them ends the episode."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, NUM_ACTIONS, (steps, num_envs), dtype=np.int32)
    actions[rng.random(actions.shape) < reset_share] = FORCE_RESET
    return actions


def look(pool):
    """Copies of all that a pool shows."""
    return [array.copy() for array in (*pool.observe(), *pool.info)]


def play(pool, actions):
    """Step a pool through actions; gives what it showed after each."""
    seen = []
    for action in actions:
        pool.act(action)
        seen.append(look(pool))
    return seen


def assert_same(one, other):
    assert len(one) == len(other)
    for step, (left, right) in enumerate(zip(one, other, strict=True)):
        for a, b in zip(left, right, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"at step {step}")
