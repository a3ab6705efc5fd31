import pytest

from srwm.errors import InputError
from srwm.rl.procgen import GAMES, aggregate, normalised_score
from srwm.rl.procgen.paper import EASY_6, EXPERTS, MEMORY_4
from srwm.rl.procgen.scores import BOUNDS

PRINTED = [
    pytest.param(distribution, result, id=f"{distribution}-{memory}-{part}")
    for distribution, table in (("easy", EASY_6), ("memory", MEMORY_4))
    for memory, parts in table.items()
    for part, result in parts.items()
    if (memory, part) != ("lstm", "train")
]


@pytest.mark.parametrize(("distribution", "result"), PRINTED)
def test_the_returns_of_the_paper_give_its_aggregates(distribution, result):
    means = {game: score.mean for game, score in result.games.items()}
    assert aggregate(means, distribution) == pytest.approx(result.aggregate.mean, abs=0.4)


def test_one_aggregate_of_the_paper_does_not_follow_from_its_games():
    result = EASY_6["lstm"]["train"]
    means = {game: score.mean for game, score in result.games.items()}
    assert aggregate(means, "easy") == pytest.approx(24.8, abs=0.1)
    assert result.aggregate.mean == 28.3


def test_the_tables_of_the_paper_are_whole():
    assert {len(parts) for table in (EASY_6, MEMORY_4) for parts in table.values()} == {2}
    assert (len(EASY_6), len(MEMORY_4), len(EXPERTS)) == (6, 2, 2)
    assert EXPERTS["starpilot"]["srwm"]["test"].mean == 57.3


def test_bounds_are_known_for_every_game():
    for table in BOUNDS.values():
        assert sorted(table) == sorted(GAMES)
        assert all(least < most for least, most in table.values())


def test_scores_run_from_bound_to_bound_and_are_not_clipped():
    assert normalised_score("maze", 5.0, "easy") == 0
    assert normalised_score("maze", 10.0, "easy") == 1
    assert normalised_score("maze", 0.0, "easy") == -1
    assert normalised_score("starpilot", 70.0, "easy") > 1


def test_the_memory_distribution_is_measured_by_the_bounds_of_the_hard_one():
    assert normalised_score("miner", 20.0, "memory") == normalised_score("miner", 20.0, "hard") == 1


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(InputError, match="no game 'pong'"):
        normalised_score("pong", 1.0, "easy")
    with pytest.raises(InputError, match="no published scores"):
        normalised_score("leaper", 1.0, "extreme")
    with pytest.raises(InputError, match="no returns"):
        aggregate({}, "easy")
