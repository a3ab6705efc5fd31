import gc
import threading
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from srwm.errors import InputError
from srwm.rl.procgen import (
    EASY_SPLITS,
    FORCE_RESET,
    FRAME_SHAPE,
    GAMES,
    GAMES_WITH,
    MEMORY_SPLITS,
    NUM_ACTIONS,
    Pool,
    PoolOptions,
)

from .playing import assert_same, look, play, random_actions

pytestmark = pytest.mark.usefixtures("library")

SIX_GAMES = ("bigfish", "fruitbot", "maze", "leaper", "plunder", "starpilot")
OPTIONS = PoolOptions(games=SIX_GAMES, num_envs=12, seed=3)
FLAGS = (
    "center_agent",
    "use_backgrounds",
    "use_monochrome_assets",
    "restrict_themes",
    "use_generated_assets",
    "paint_vel_info",
)


def test_a_new_pool_shows_the_first_frame_of_every_game():
    with Pool(OPTIONS) as pool:
        frames, rewards, first = pool.observe()
        assert (frames.shape, frames.dtype) == ((12, *FRAME_SHAPE), np.uint8)
        assert (rewards.shape, rewards.dtype) == ((12,), np.float32)
        assert (first.shape, first.dtype) == ((12,), np.bool_)
        assert first.all()
        assert not rewards.any()
        assert len({frame.tobytes() for frame in frames}) == 12


def test_equal_seeds_and_actions_give_equal_frames_for_any_number_of_threads():
    actions = random_actions(150, 12, reset_share=0.01)
    seen = {}
    for threads in (0, 1, 2):
        with Pool(replace(OPTIONS, threads=threads)) as pool:
            seen[threads] = [look(pool), *play(pool, actions)]
    assert_same(seen[0], seen[1])
    assert_same(seen[0], seen[2])


def test_another_seed_gives_other_levels():
    with Pool(OPTIONS) as pool, Pool(replace(OPTIONS, seed=4)) as other:
        assert (pool.info.level_seed != other.info.level_seed).any()


def test_environments_take_turns_with_the_games_of_a_pool():
    frames = []
    for game in SIX_GAMES:
        with Pool(PoolOptions(games=(game,), num_envs=1, start_level=7, num_levels=1)) as pool:
            frames.append(pool.observe().frames[0].copy())
    with Pool(replace(OPTIONS, start_level=7, num_levels=1)) as pool:
        np.testing.assert_array_equal(pool.observe().frames, np.stack(frames * 2))


@pytest.mark.parametrize("distribution", GAMES_WITH)
def test_every_game_that_has_a_distribution_plays_in_it(distribution):
    games = GAMES_WITH[distribution]
    with Pool(PoolOptions(games=games, num_envs=len(games), distribution=distribution)) as pool:
        before = pool.observe().frames.copy()
        changed = [seen[0] != before for seen in play(pool, random_actions(20, len(games)))]
        assert np.any(changed, axis=(0, 2, 3, 4)).all()


@pytest.mark.parametrize("flag", FLAGS)
def test_every_way_to_draw_works_in_every_game_and_shows(flag):
    options = PoolOptions(games=GAMES, num_envs=len(GAMES), start_level=3, num_levels=1)
    actions = random_actions(3, len(GAMES))
    with Pool(options) as pool, Pool(replace(options, **{flag: not getattr(options, flag)})) as other:
        assert not np.array_equal(play(pool, actions)[-1][0], play(other, actions)[-1][0])


@pytest.mark.parametrize(
    ("distribution", "levels"),
    [("easy", part) for part in EASY_SPLITS.named().values()]
    + [("memory", part) for part in MEMORY_SPLITS.named().values()],
    ids=str,
)
def test_levels_stay_in_their_range(distribution, levels):
    games = SIX_GAMES if distribution == "easy" else ("dodgeball", "heist", "maze", "miner")
    options = PoolOptions(games, 12, distribution, start_level=levels.start, num_levels=levels.count)
    seen = set()
    with Pool(options) as pool:
        for _ in range(40):
            seen |= set(pool.info.level_seed.tolist())
            before = pool.info.level_seed.copy()
            pool.act(np.full(12, FORCE_RESET))
            assert pool.observe().first.all()
            assert (pool.info.prev_level_seed == before).all()
    assert seen <= set(levels.levels)
    assert len(seen) > 100


def test_a_reset_can_be_forced_for_one_environment():
    actions = np.full(12, 4)
    actions[5] = FORCE_RESET
    with Pool(OPTIONS) as pool:
        pool.act(actions)
        assert pool.observe().first.tolist() == [env == 5 for env in range(12)]


def test_a_solved_level_is_told_with_its_reward():
    with Pool(PoolOptions(games=("coinrun",), num_envs=8)) as pool:
        for _ in range(400):
            pool.act(np.full(8, 8))  # To the right, and jump.
            _, rewards, first = pool.observe()
            solved = pool.info.prev_level_complete
            np.testing.assert_array_equal(rewards, np.where(solved, 10, 0))
            if solved.any():
                assert first[solved].all()
                return
    pytest.fail("no level was solved")


def test_pools_write_side_by_side_into_memory_of_torch():
    frames = torch.zeros(18, *FRAME_SHAPE, dtype=torch.uint8)
    rewards, first = torch.zeros(18), torch.zeros(18, dtype=torch.bool)
    other_options = replace(OPTIONS, num_envs=6, seed=9)
    actions = random_actions(60, 18)

    def parts(start, stop):
        names = {"frames": frames, "rewards": rewards, "first": first}
        return {name: tensor.numpy()[start:stop] for name, tensor in names.items()}

    with Pool(OPTIONS, **parts(0, 12)) as one, Pool(other_options, **parts(12, 18)) as two:
        for action in actions:
            one.act(action[:12])
            two.act(action[12:])
        one.observe()
        two.observe()
    with Pool(OPTIONS) as one, Pool(other_options) as two:
        expected = [play(one, actions[:, :12])[-1], play(two, actions[:, 12:])[-1]]
    for tensor, pair in zip((frames, rewards, first), zip(*expected, strict=True), strict=False):
        np.testing.assert_array_equal(tensor.numpy(), np.concatenate(pair))


def test_frames_may_lie_apart():
    room = np.zeros((12, 2, *FRAME_SHAPE), np.uint8)
    with Pool(OPTIONS, frames=room[:, 1], first=np.zeros(12, np.uint8)) as pool, Pool(OPTIONS) as other:
        np.testing.assert_array_equal(pool.observe().frames, other.observe().frames)
        assert (pool.observe().first == 1).all()
    assert room[:, 1].any()
    assert not room[:, 0].any()


def read_only(array):
    array.flags.writeable = False
    return array


WRONG_ARRAYS = {
    "too few": ({"frames": np.zeros((11, *FRAME_SHAPE), np.uint8)}, "got uint8 .11, 64"),
    "other size": ({"frames": np.zeros((12, 3, 64, 64), np.uint8)}, "got uint8 .12, 3"),
    "other type": ({"frames": np.zeros((12, *FRAME_SHAPE), np.int8)}, "expected uint8"),
    "spread": (
        {"frames": np.zeros((12, 3, 64, 64), np.uint8).transpose(0, 2, 3, 1)},
        "frames: expected a contiguous array",
    ),
    "the same": ({"frames": np.broadcast_to(np.zeros(FRAME_SHAPE, np.uint8), (12, *FRAME_SHAPE))}, "frames is"),
    "reversed": ({"frames": np.zeros((12, *FRAME_SHAPE), np.uint8)[::-1]}, "frames: expected a contiguous array"),
    "read-only": ({"frames": read_only(np.zeros((12, *FRAME_SHAPE), np.uint8))}, "frames is read-only"),
    "doubles": ({"rewards": np.zeros(12)}, "rewards: expected float32 .12., got float64 .12."),
    "every other": ({"rewards": np.zeros(24, np.float32)[::2]}, "rewards: expected a contiguous array"),
    "numbers": ({"first": np.zeros(12, np.int32)}, "first: expected bool or uint8 .12., got int32 .12."),
}


@pytest.mark.parametrize(("arrays", "words"), WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_an_array_that_cannot_be_written_to_is_refused(arrays, words):
    with pytest.raises(InputError, match=words):
        Pool(OPTIONS, **arrays)


WRONG_ACTIONS = {
    "too few": (np.zeros(11, np.int32), r"expected whole numbers \[12\], got int32 \[11\]"),
    "two axes": (np.zeros((12, 1), np.int32), r"got int32 \[12, 1\]"),
    "fractions": (np.zeros(12), "float64"),
    "too large": (np.full(12, NUM_ACTIONS), "expected 0 to 14, or -1 for a reset, got 15"),
    "too small": (np.full(12, -2), "got -2"),
    "not a number": (np.array(["left"] * 12), "<U4"),
}


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(("actions", "words"), WRONG_ACTIONS.values(), ids=WRONG_ACTIONS)
def test_actions_that_mean_nothing_are_refused(actions, words):
    with Pool(OPTIONS) as pool, pytest.raises(InputError, match=words):
        pool.act(actions)


def test_a_closed_pool_refuses_everything_but_to_be_closed_again():
    pool = Pool(OPTIONS)
    states = pool.get_state()
    frames = pool.observe().frames
    before = frames.copy()
    pool.close()
    pool.close()
    assert pool.closed
    assert "closed" in repr(pool)
    uses = [pool.observe, pool.get_state, pool.time_limits]
    uses += [lambda: pool.act(np.zeros(12, np.int32)), lambda: pool.set_state(states)]
    for use in uses:
        with pytest.raises(InputError, match="this pool of ProcGen games is closed; open a new one"):
            use()
    np.testing.assert_array_equal(frames, before)


def test_a_pool_that_another_process_opened_is_refused(monkeypatch):
    pool = Pool(OPTIONS)
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        with pytest.raises(InputError, match="belongs to another process"):
            pool.observe()
    pool.close()


def test_a_pool_is_closed_while_another_thread_plays_it():
    pool = Pool(replace(OPTIONS, threads=1))
    ends = []
    playing = threading.Event()

    def play_on():
        try:
            while True:
                pool.act(np.zeros(12, np.int32))
                pool.observe()
                playing.set()
        except InputError as error:
            ends.append(str(error))

    player = threading.Thread(target=play_on)
    player.start()
    playing.wait()
    pool.close()
    player.join()
    assert ends == ["this pool of ProcGen games is closed; open a new one"]


def threads_of_this_process():
    """Count the system's threads, where it tells; those of the library are none of Python's."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.is_dir() else 0


@pytest.mark.parametrize("threads", [0, 2])
def test_a_forgotten_pool_goes_away_with_its_threads(threads):
    before = threads_of_this_process()
    pool = Pool(replace(OPTIONS, threads=threads))
    pool.act(np.zeros(12, np.int32))
    gone = weakref.ref(pool)
    frames = pool.observe().frames
    del pool
    gc.collect()
    assert gone() is None
    assert frames.any()
    assert threads_of_this_process() <= before


def test_time_limits_are_those_of_the_games():
    with Pool(PoolOptions(games=("bigfish", "bossfight", "maze", "starpilot"), num_envs=4)) as pool:
        assert pool.time_limits().tolist() == [6000, 4000, 500, 1000]
    with Pool(PoolOptions(games=("maze",), num_envs=3)) as pool:
        for step in range(1, 501):
            pool.act(np.full(3, 4))
            assert pool.observe().first.all() == (step == 500)
