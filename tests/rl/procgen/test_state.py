from dataclasses import replace

import pytest

from srwm.errors import InputError
from srwm.rl.procgen import GAMES, GAMES_WITH, Pool, PoolOptions

from .playing import assert_same, look, play, random_actions

pytestmark = pytest.mark.usefixtures("library")

OPTIONS = {
    "easy": PoolOptions(games=("bigfish", "fruitbot", "maze", "leaper", "plunder", "starpilot"), num_envs=12, seed=5),
    "memory": PoolOptions(games=GAMES_WITH["memory"], num_envs=6, distribution="memory", num_levels=500),
    "all": PoolOptions(games=GAMES, num_envs=16, distribution="hard", num_levels=0, paint_vel_info=True),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_pool_goes_back_to_a_state_exactly(options):
    actions = random_actions(240, options.num_envs, reset_share=0.01)
    with Pool(options) as pool:
        play(pool, actions[:120])
        there = look(pool)
        states = pool.get_state()
        after = play(pool, actions[120:])
        pool.set_state(states)
        assert_same([there], [look(pool)])
        assert pool.get_state() == states
        assert_same(after, play(pool, actions[120:]))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("threads", [0, 2])
def test_another_pool_goes_on_from_a_state_exactly(options, threads):
    actions = random_actions(200, options.num_envs, reset_share=0.01)
    with Pool(options) as pool, Pool(replace(options, seed=99, threads=threads)) as other:
        play(pool, actions[:100])
        play(other, actions[50:57])
        other.set_state(pool.get_state())
        assert_same([look(pool)], [look(other)])
        assert_same(play(pool, actions[100:]), play(other, actions[100:]))


def test_a_state_can_be_taken_while_the_library_steps():
    options = replace(OPTIONS["easy"], threads=2)
    action = random_actions(1, 12)[0]
    with Pool(options) as pool, Pool(options) as other:
        pool.act(action)
        other.act(action)
        other.observe()
        assert pool.get_state() == other.get_state()


def test_states_move_between_places_of_the_same_game():
    options = OPTIONS["easy"]
    with Pool(options) as pool, Pool(options) as other:
        play(pool, random_actions(20, 12))
        states = pool.get_state()
        other.set_state(states[6:] + states[:6])
        assert (other.observe().frames[6:] == pool.observe().frames[:6]).all()


def changed(state, place):
    return state[:place] + bytes([state[place] ^ 1]) + state[place + 1 :]


BROKEN = {
    "nothing": lambda state: b"",
    "noise": lambda state: b"\x07" * len(state),
    "the library's own": lambda state: state[8:],
    "half": lambda state: state[: len(state) // 2],
    "one byte less": lambda state: state[:-1],
    "one byte more": lambda state: state + b"\0",
    "a bit at the mark": lambda state: changed(state, 0),
    "a bit at the checksum": lambda state: changed(state, 5),
    "a bit at the name": lambda state: changed(state, 16),
    "a bit in the middle": lambda state: changed(state, len(state) // 2),
    "a bit at the end": lambda state: changed(state, len(state) - 1),
}


@pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN)
def test_a_broken_state_is_refused_and_changes_nothing(damage):
    with Pool(OPTIONS["easy"]) as pool:
        play(pool, random_actions(5, 12))
        states = pool.get_state()
        play(pool, random_actions(5, 12))
        before = look(pool)
        with pytest.raises(InputError, match=r"the state for environment 7 (is broken|is no saved state)"):
            pool.set_state([*states[:7], damage(states[7]), *states[8:]])
        assert_same([before], [look(pool)])


MAZE = PoolOptions(games=("maze",), num_envs=2)
OTHERS = {
    "game": (replace(MAZE, games=("heist",)), "is of the game heist, but the environment plays maze"),
    "distribution": (replace(MAZE, distribution="hard"), "expected distribution_mode=0, as its pool has, got 1"),
    "levels": (replace(MAZE, start_level=1000), "expected level_seed_low=0, as its pool has, got 1000"),
    "number of levels": (replace(MAZE, num_levels=500), "expected level_seed_high=200, as its pool has, got 500"),
    "backgrounds": (replace(MAZE, use_backgrounds=False), "expected use_backgrounds=1, as its pool has, got 0"),
}


@pytest.mark.parametrize(("options", "words"), OTHERS.values(), ids=OTHERS)
def test_a_state_of_other_games_or_levels_is_refused(options, words):
    with Pool(MAZE) as pool, Pool(options) as other, pytest.raises(InputError, match=words):
        pool.set_state(other.get_state())


def test_a_wrong_number_of_states_is_refused():
    with Pool(MAZE) as pool, pytest.raises(InputError, match="expected 2 states, one for each environment, got 1"):
        pool.set_state(pool.get_state()[:1])
