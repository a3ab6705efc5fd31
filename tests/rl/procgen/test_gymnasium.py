import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from srwm.errors import InputError
from srwm.rl.procgen import Pool, PoolOptions
from srwm.rl.procgen.gymnasium_env import ProcgenEnv, ProcgenVectorEnv

pytestmark = pytest.mark.usefixtures("library")


@pytest.fixture
def registered():
    """The name under which Gymnasium makes a single environment; its checker wants one to try the ways of drawing."""
    gymnasium.register("srwm-test/ProcGen-v0", entry_point=ProcgenEnv)
    yield "srwm-test/ProcGen-v0"
    del gymnasium.registry["srwm-test/ProcGen-v0"]


@pytest.mark.parametrize(("game", "distribution"), [("coinrun", "easy"), ("maze", "memory")])
def test_the_checker_of_gymnasium_finds_nothing(game, distribution, registered):
    env = gymnasium.make(registered, game=game, distribution=distribution, render_mode="rgb_array")
    check_env(env.unwrapped)
    env.close()


@pytest.fixture
def envs():
    envs = ProcgenVectorEnv(("maze", "bigfish"), 6, num_levels=50)
    yield envs
    envs.close()


def test_what_a_vector_gives_lies_in_its_spaces(envs):
    assert envs.observation_space.shape == (6, 64, 64, 3)
    assert envs.action_space == gymnasium.spaces.MultiDiscrete([15] * 6)
    frames, infos = envs.reset(seed=1)
    envs.action_space.seed(0)
    for _ in range(100):
        assert frames in envs.observation_space
        frames, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        assert (rewards.shape, rewards.dtype) == ((6,), np.float32)
        for ends in (terminations, truncations):
            assert (ends.shape, ends.dtype) == ((6,), np.bool_)
        assert not (terminations & truncations).any()
        assert set(infos) == {"level_seed", "prev_level_seed", "prev_level_complete"}
        assert infos["level_seed"].max() < 50


def run(envs, seed, steps=60):
    envs.action_space.seed(3)
    return [envs.reset(seed=seed), *(envs.step(envs.action_space.sample()) for _ in range(steps))]


def test_equal_seeds_give_equal_episodes(envs):
    one, again, other = run(envs, 1), run(envs, 1), run(envs, 2)
    assert data_equivalence(one, again, exact=True)
    assert not np.array_equal(one[0][0], other[0][0])


def test_a_vector_plays_what_its_pool_plays(envs):
    seen = run(envs, 8)
    envs.action_space.seed(3)
    with Pool(PoolOptions(("maze", "bigfish"), 6, num_levels=50, seed=8)) as pool:
        for frames, rewards, terminations, truncations, _ in seen[1:]:
            pool.act(envs.action_space.sample())
            expected = pool.observe()
            np.testing.assert_array_equal(frames, expected.frames)
            np.testing.assert_array_equal(rewards, expected.rewards)
            np.testing.assert_array_equal(terminations | truncations, expected.first)


def test_what_was_given_is_not_overwritten(envs):
    frames, infos = envs.reset(seed=1)
    before, levels = frames.copy(), infos["level_seed"].copy()
    for _ in range(10):
        envs.step(np.zeros(6, np.int64))
    np.testing.assert_array_equal(frames, before)
    np.testing.assert_array_equal(infos["level_seed"], levels)


def test_episodes_begin_anew_in_the_step_that_ends_them_and_time_limits_are_told(envs):
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    wrapped = RecordEpisodeStatistics(envs)
    wrapped.reset(seed=1)
    for step in range(1, 502):
        _, _, terminations, truncations, infos = wrapped.step(np.full(6, 4))
        assert not terminations[::2].any()
        assert truncations[::2].all() == truncations.any() == (step == 500)
        if step == 500:
            assert infos["episode"]["l"][::2].tolist() == [500] * 3
            assert "final_obs" not in infos


def test_a_reset_without_a_seed_begins_other_episodes(envs):
    first, _ = envs.reset(seed=1)
    second, _ = envs.reset()
    assert (first != second).any()
    again, _ = envs.reset(seed=1)
    np.testing.assert_array_equal(again, first)


def test_large_frames_can_be_drawn():
    envs = ProcgenVectorEnv("starpilot", 2, render_mode="rgb_array")
    envs.reset(seed=1)
    pictures = envs.render()
    envs.close()
    assert [picture.shape for picture in pictures] == [(512, 512, 3)] * 2
    assert ProcgenVectorEnv("starpilot", 2).render() is None


def test_a_single_environment_shows_the_frame_before_at_the_end_of_an_episode():
    env = ProcgenEnv("maze", num_levels=1)
    env.reset(seed=1)
    for step in range(1, 501):
        frame, _, terminated, truncated, _ = env.step(4)
        assert (terminated, truncated) == (False, step == 500)
    first, _ = env.reset()
    np.testing.assert_array_equal(frame, first)  # It stood still for the whole episode.
    env.step(np.int64(4))
    env.close()


def test_a_single_environment_wants_a_reset_after_the_end():
    env = ProcgenEnv("bigfish")
    env.reset(seed=1)
    while not env.step(4)[2]:
        pass
    with pytest.raises(InputError, match="the episode is over"):
        env.step(4)
    _, info = env.reset()
    assert info["level_seed"] in range(200)
    env.close()


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"games": "bigfish", "distribution": "memory"}, "bigfish has no memory distribution"),
        ({"games": "bigfish", "difficulty": "easy"}, "difficulty"),
        ({"games": "bigfish", "render_mode": "human"}, "render_mode: expected None or 'rgb_array', got 'human'"),
        ({"games": ("bigfish", "maze"), "num_envs": 3}, "num_envs=3"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        ProcgenVectorEnv(**{"num_envs": 2, **options})


@pytest.mark.parametrize("seed", [-1, 2**31])
def test_a_bad_seed_is_refused(seed, envs):
    with pytest.raises((InputError, gymnasium.error.Error), match=r"[sS]eed"):
        envs.reset(seed=seed)


def test_a_part_cannot_be_reset(envs):
    with pytest.raises(InputError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.ones(6, np.bool_)})


def test_a_closed_environment_is_refused():
    envs = ProcgenVectorEnv("maze", 2)
    envs.close()
    envs.close()
    for use in (envs.reset, lambda: envs.reset(seed=1), lambda: envs.step(np.zeros(2, np.int64))):
        with pytest.raises(InputError, match="closed"):
            use()
