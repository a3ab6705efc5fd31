import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srwm.data import read_pack
from srwm.data.splits import cifar_fs_split, fc100_split, split_by_name, vinyals_split


@given(st.lists(st.text(max_size=5), min_size=3, max_size=60, unique=True), st.randoms(use_true_random=False))
def test_a_class_stays_in_its_part_in_whatever_order_the_names_come(names, rng):
    parts = dict(zip(names, split_by_name(names), strict=True))
    mixed = rng.sample(names, len(names))
    assert split_by_name(mixed) == [parts[name] for name in mixed]
    assert set(parts.values()) == {1, 2, 3}


def test_a_hundred_classes_are_split_64_16_20():
    codes = split_by_name([f"class{number}" for number in range(100)])
    assert [codes.count(code) for code in (1, 2, 3)] == [64, 16, 20]


def test_the_split_is_the_same_for_ever():
    assert split_by_name(["ant", "bee", "cat", "dog", "elk", "fox", "gnu"]) == [1, 1, 1, 3, 1, 1, 2]


def test_the_split_is_not_alphabetic():
    names = [f"{number:03}" for number in range(100)]
    assert [name for name, code in zip(names, split_by_name(names), strict=True) if code == 1] != names[:64]


def test_two_classes_cannot_be_split():
    with pytest.raises(ValueError, match="2 classes"):
        split_by_name(["a", "b"])


def test_vinyals_split_is_that_of_the_pack(real_pack):
    pack = read_pack(real_pack("omniglot.npz"))
    rows = zip(pack.class_groups, pack.class_names, pack.splits["original"] == 3, strict=True)
    assert [vinyals_split(group, name, bool(test)) for group, name, test in rows] == pack.splits["vinyals"].tolist()


def test_cifar_splits_are_those_of_the_pack(real_pack):
    pack = read_pack(real_pack("cifar100.npz"))
    assert [fc100_split(group) for group in pack.class_groups] == pack.splits["fc100"].tolist()
    assert [cifar_fs_split(name) for name in pack.class_names] == pack.splits["cifarfs"].tolist()


def test_names_of_any_script_are_split():
    names = ["あ", "ж", "é", "x" * 1000, ""]
    random.Random(0).shuffle(names)
    assert sorted(split_by_name(names)) == [1, 1, 1, 2, 3]
