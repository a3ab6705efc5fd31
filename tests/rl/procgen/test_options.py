from dataclasses import replace

import pytest

from srwm.errors import InputError
from srwm.rl.procgen import ACTIONS, GAMES, GAMES_WITH, PoolOptions
from srwm.runs.config import from_json, to_json

GOOD = PoolOptions(games=("maze",), num_envs=2)

BAD = [
    ({"games": ()}, "games: expected a tuple of one or several of bigfish"),
    ({"games": "maze"}, "games: expected a tuple of one or several of bigfish"),
    ({"games": ["maze"]}, "games: expected a tuple of one or several of bigfish"),
    ({"games": ("mase",)}, "no game 'mase'; did you mean 'maze'"),
    ({"games": ("maze,heist",)}, "no game 'maze,heist'"),
    ({"games": ("coinrun_old",)}, "no game 'coinrun_old'"),
    ({"games": ("",)}, "no game ''; the games are bigfish,"),
    ({"games": (7,)}, "no game 7"),
    ({"games": ("maze", "maze")}, "maze is named twice"),
    ({"distribution": "exploration"}, "distribution: expected one of easy, hard, extreme, memory, got 'exploration'"),
    ({"distribution": 0}, "distribution: expected one of easy, hard, extreme, memory, got 0"),
    ({"distribution": None}, "distribution: expected one of easy, hard, extreme, memory, got None"),
    ({"num_envs": 0}, "num_envs: expected a whole number from 1 to 65536, got 0"),
    ({"num_envs": -1}, "num_envs: expected a whole number from 1 to 65536, got -1"),
    ({"num_envs": 10**9}, "num_envs: expected a whole number from 1 to 65536, got 1000000000"),
    ({"num_envs": 2.0}, "num_envs: expected a whole number from 1 to 65536, got 2.0"),
    ({"num_envs": True}, "num_envs: expected a whole number from 1 to 65536, got True"),
    ({"games": ("maze", "heist"), "num_envs": 3}, "num_envs=3 is not a multiple of the number of games, which is 2"),
    ({"start_level": -1}, "start_level: expected a whole number from 0 to 2147483646, got -1"),
    ({"start_level": 2**31 - 1}, "start_level: expected a whole number from 0 to 2147483646, got 2147483647"),
    ({"start_level": "0"}, "start_level: expected a whole number from 0 to 2147483646, got '0'"),
    ({"num_levels": -1}, "num_levels: expected a whole number from 0 to 2147483647, got -1"),
    ({"num_levels": 2**31}, "num_levels: expected a whole number from 0 to 2147483647, got 2147483648"),
    ({"start_level": 2**31 - 100, "num_levels": 100}, "goes beyond the last level, 2147483646"),
    ({"start_level": 5, "num_levels": 0}, "start_level=5 means nothing with num_levels=0"),
    ({"seed": -1}, "seed: expected a whole number from 0 to 2147483647, got -1"),
    ({"seed": 2**31}, "seed: expected a whole number from 0 to 2147483647, got 2147483648"),
    ({"seed": None}, "seed: expected a whole number from 0 to 2147483647, got None"),
    ({"threads": -1}, "threads: expected a whole number from 0 to 256, got -1"),
    ({"threads": 1000}, "threads: expected a whole number from 0 to 256, got 1000"),
    ({"use_backgrounds": 1}, "use_backgrounds: expected True or False, got 1"),
    ({"center_agent": "no"}, "center_agent: expected True or False, got 'no'"),
    ({"paint_vel_info": None}, "paint_vel_info: expected True or False, got None"),
]


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(("changes", "words"), BAD, ids=[str(changes) for changes, _ in BAD])
def test_a_bad_option_is_refused_by_name(changes, words):
    with pytest.raises(InputError) as caught:
        replace(GOOD, **changes)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("game", "distribution"),
    [(game, mode) for mode, games in GAMES_WITH.items() for game in GAMES if game not in games],
)
def test_a_game_without_a_distribution_is_refused_with_those_that_have_it(game, distribution):
    with pytest.raises(InputError, match=f"{game} has no {distribution} distribution; those that have one are "):
        PoolOptions(games=(game,), num_envs=1, distribution=distribution)


def test_a_bad_option_is_a_value_error():
    with pytest.raises(ValueError, match="bigfish has no memory distribution"):
        PoolOptions(games=("maze", "bigfish"), num_envs=2, distribution="memory")


def test_the_defaults_are_the_training_levels_of_the_paper():
    assert (GOOD.distribution, GOOD.level_range) == ("easy", range(200))


def test_no_number_of_levels_means_all():
    assert replace(GOOD, num_levels=0).level_range == range(2**31 - 1)


def test_the_last_levels_can_be_played():
    assert replace(GOOD, start_level=2**31 - 2, num_levels=1).level_range == range(2**31 - 2, 2**31 - 1)


def test_environments_take_turns_with_the_games():
    options = PoolOptions(games=("maze", "heist", "miner"), num_envs=6)
    assert [options.game_of(env) for env in range(6)] == ["maze", "heist", "miner"] * 2


def test_options_go_through_json():
    options = replace(GOOD, distribution="memory", start_level=1000, use_backgrounds=False)
    assert from_json(PoolOptions, to_json(options)) == options


def test_there_are_sixteen_games_and_fifteen_actions():
    assert (len(GAMES), len(ACTIONS)) == (16, 15)
