from dataclasses import replace

import pytest

from srwm.errors import InputError
from srwm.rl.procgen import EASY_SPLITS, MEMORY_SPLITS, LevelRange, LevelSplits, splits_of


@pytest.mark.parametrize(("splits", "train"), [(EASY_SPLITS, range(200)), (MEMORY_SPLITS, range(500))])
def test_the_splits_are_those_of_the_paper(splits, train):
    assert {name: part.levels for name, part in splits.named().items()} == {
        "train": train,
        "validation": range(500, 700),
        "test-1": range(1000, 1200),
        "test-2": range(1200, 1400),
        "test-3": range(1400, 1600),
    }


@pytest.mark.parametrize("splits", [EASY_SPLITS, MEMORY_SPLITS])
def test_no_level_is_in_two_splits(splits):
    levels = [level for part in splits.named().values() for level in part.levels]
    assert len(set(levels)) == len(levels)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train": LevelRange(0, 501)}, "levels 0-500 of 'train' and 500-699 of 'validation' overlap"),
        ({"train": LevelRange(1599, 1)}, "levels 1599-1599 of 'train' and 1400-1599 of 'test-3' overlap"),
        ({"train": LevelRange(0, 2000)}, "of 'train' and"),
        ({"validation": LevelRange(1100, 10)}, "of 'validation' and 1000-1199 of 'test-1' overlap"),
        ({"tests": (LevelRange(1000, 200), LevelRange(1199, 200))}, "of 'test-1' and 1199-1398 of 'test-2' overlap"),
        ({"tests": (LevelRange(0, 200),)}, "of 'train' and 0-199 of 'test-1' overlap"),
    ],
)
def test_splits_that_overlap_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        replace(EASY_SPLITS, **changes)


def test_neighbours_do_not_overlap():
    LevelSplits(LevelRange(0, 500), LevelRange(500, 500), (LevelRange(1000, 1),))


@pytest.mark.parametrize(("start", "count"), [(-1, 5), (0, 0), (0, -1), (2**31 - 2, 2)])
def test_levels_that_are_not_there_are_refused(start, count):
    with pytest.raises(InputError, match=f"got {start} to {start + count - 1}"):
        LevelRange(start, count)


def test_every_distribution_has_its_splits():
    assert splits_of("memory") is MEMORY_SPLITS
    assert splits_of("easy") is splits_of("hard") is EASY_SPLITS
