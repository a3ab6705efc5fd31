"""The axes of a grid, its samples, and seeds."""

import pytest

from srwm.errors import InputError
from srwm.sweep import PAPER, parse_grid, parse_seeds, parse_sets
from srwm.sweep._grid import sample, settings


def test_grid_is_every_combination_with_the_last_axis_fastest():
    grid = settings(parse_grid(["a=1,2", "b=x,y"]))
    assert grid == [
        (("a", "1"), ("b", "x")),
        (("a", "1"), ("b", "y")),
        (("a", "2"), ("b", "x")),
        (("a", "2"), ("b", "y")),
    ]


def test_no_grid_is_one_setting_that_changes_nothing():
    assert settings(()) == [()]


def test_commas_in_brackets_belong_to_a_value():
    assert parse_grid(["betas=[0.9,0.995],[0.9,0.999]"]) == (
        ((("betas", "[0.9,0.995]"),), (("betas", "[0.9,0.999]"),)),
    )


def test_grid_of_the_paper_is_its_search_space():
    grid = settings(parse_grid(["paper"]))
    assert len(grid) == len(set(grid)) == 768
    values = {}
    for setting in grid:
        for key, value in setting:
            values.setdefault(key, set()).add(float(value) if key != "optimizer.schedule" else value)
    assert values == {
        "model.num_layers": {2, 3, 4},
        "model.hidden_size": {128, 256},
        "model.ff_size": {512, 1024, 2048},
        "model.dropout": {0, 0.1, 0.2, 0.3},
        "model.encoder_dropout": {0, 0.1, 0.2, 0.3},
        "optimizer.learning_rate": {1e-3, 3e-4, 1e-4},
        "optimizer.schedule": {"constant", "noam"},
    }


def test_grid_of_the_paper_ties_width_to_size_and_rate_to_schedule():
    for setting in map(dict, settings(PAPER)):
        assert int(setting["model.ff_size"]) in {
            4 * int(setting["model.hidden_size"]),
            8 * int(setting["model.hidden_size"]),
        }
        assert ("optimizer.learning_rate" in setting) == (setting["optimizer.schedule"] == "constant")


def test_sample_is_drawn_by_the_seed_and_keeps_the_order_of_the_grid():
    grid = settings(PAPER)
    some = sample(grid, 20, seed=0)
    assert some == sample(grid, 20, seed=0) == sorted(set(some), key=grid.index)
    assert len(some) == 20
    assert some != sample(grid, 20, seed=1)


def test_sample_is_the_same_for_ever():
    # A sweep that was begun with an earlier version must find its runs again.
    grid = settings(parse_grid(["a=1,2,3,4,5,6,7,8"]))
    assert sample(grid, 3, seed=0) == [
        (("a", "2"),),
        (("a", "5"),),
        (("a", "8"),),
    ]


def test_larger_sample_holds_the_smaller_one():
    grid = settings(PAPER)
    assert set(sample(grid, 10, seed=3)) <= set(sample(grid, 30, seed=3))


@pytest.mark.parametrize("count", [0, -1, 5])
def test_sample_that_the_grid_cannot_give_is_refused(count):
    with pytest.raises(InputError, match=f"--sample {count}: the grid has 4 settings"):
        sample(settings(parse_grid(["a=1,2,3,4"])), count, seed=0)


@pytest.mark.parametrize(
    ("words", "seeds"),
    [(["3"], (3,)), (["0", "1", "2"], (0, 1, 2)), (["0-3"], (0, 1, 2, 3)), (["0-1,7", "9"], (0, 1, 7, 9))],
)
def test_seeds_are_numbers_and_ranges(words, seeds):
    assert parse_seeds(words) == seeds


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["x"], "'x' is no seed"),
        (["-1"], "'-1' is no seed"),
        (["1.5"], "'1.5' is no seed"),
        ([""], "'' is no seed"),
        (["4-1"], "runs backwards; write 1-4"),
        (["0-99999999"], "more than 10,000 seeds"),
        (["0-2", "1"], "the seed 1 is given twice"),
    ],
)
def test_wrong_seeds_are_refused(words, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_seeds(words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["papr"], "--grid papr: expected KEY=V1,V2,.* or a named grid: 'paper'"),
        (["=1,2"], "expected KEY=V1,V2"),
        (["a="], "a value is missing"),
        (["a=1,,2"], "a value is missing"),
        (["a=1,1"], "the value 1 is given twice"),
        (["a=1", "a=2"], "the key a is given twice"),
        (["paper", "model.dropout=0.5"], "the key model.dropout is given twice"),
        ([f"k{i}={','.join(map(str, range(10)))}" for i in range(6)], "1,000,000 settings are more than a sweep takes"),
    ],
)
def test_wrong_grids_are_refused(words, sentence):
    with pytest.raises(InputError, match=sentence):
        settings(parse_grid(words))


def test_sets_are_pairs_whose_value_may_hold_anything():
    assert parse_sets(["a=1", "b=x=y,z", "c="]) == (("a", "1"), ("b", "x=y,z"), ("c", ""))


@pytest.mark.parametrize(
    ("words", "sentence"), [(["a"], "--set a: expected KEY=VALUE"), (["a=1", "a=2"], "key a is given")]
)
def test_wrong_sets_are_refused(words, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_sets(words)
