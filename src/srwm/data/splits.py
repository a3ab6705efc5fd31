"""Which classes are for training, validation and test."""

import hashlib
from collections.abc import Sequence

from .pack import TEST, TRAIN, VALIDATION

FRACTIONS = (0.64, 0.16, 0.20)
"""Parts of a set without a split of its own: train, validation, test, as in mini-ImageNet."""
MIN_CLASSES = 3
"""With fewer classes, one of the three parts would be empty."""

VALIDATION_ALPHABETS = ("Armenian", "Bengali", "Early_Aramaic", "Hebrew", "Mkhedruli_(Georgian)")
"""Omniglot's alphabets for validation in the Vinyals split; all are background alphabets."""
_FIRST_TEST_CHARACTER = ("Gurmukhi", "character42")
"""Of Omniglot's evaluation alphabets, the Vinyals split trains on what comes before this, and tests on the rest."""

_FC100 = {
    VALIDATION: {
        "large_carnivores",
        "large_omnivores_and_herbivores",
        "non-insect_invertebrates",
        "small_mammals",
    },
    TEST: {"aquatic_mammals", "insects", "medium_mammals", "people"},
}
_CIFAR_FS = {
    VALIDATION: {
        "beaver",
        "beetle",
        "butterfly",
        "camel",
        "cattle",
        "crab",
        "crocodile",
        "flatfish",
        "lamp",
        "maple_tree",
        "motorcycle",
        "otter",
        "sea",
        "shark",
        "television",
        "tractor",
    },
    TEST: {
        "baby",
        "bed",
        "bicycle",
        "chimpanzee",
        "fox",
        "leopard",
        "man",
        "pickup_truck",
        "plain",
        "poppy",
        "rocket",
        "rose",
        "snail",
        "sweet_pepper",
        "table",
        "telephone",
        "wardrobe",
        "whale",
        "woman",
        "worm",
    },
}


def vinyals_split(alphabet: str, character: str, is_evaluation: bool) -> int:
    """Give the part of Omniglot that a character belongs to in the split of Vinyals et al. (2016)."""
    if alphabet in VALIDATION_ALPHABETS:
        return VALIDATION
    return TEST if is_evaluation and (alphabet, character) >= _FIRST_TEST_CHARACTER else TRAIN


def fc100_split(super_class: str) -> int:
    """Give the part of CIFAR-100 that a super-class belongs to in FC100 (Oreshkin et al. 2018)."""
    return next((code for code, names in _FC100.items() if super_class in names), TRAIN)


def cifar_fs_split(class_name: str) -> int:
    """Give the part of CIFAR-100 that a class belongs to in CIFAR-FS (Bertinetto et al. 2019)."""
    return next((code for code, names in _CIFAR_FS.items() if class_name in names), TRAIN)


def split_by_name(names: Sequence[str]) -> list[int]:
    """Split classes into 64% train, 16% validation and 20% test; a pure function of their names.

    The classes are put in the order of the SHA-256 of their names, which is as good as a shuffled one and the same on
    every machine; the first part trains. Every part gets at least one class.

    Args:
        names: at least three names, all different, in any order.

    Returns:
        For each name the number of its part (1 train, 2 validation, 3 test).
    """
    if len(names) < MIN_CLASSES:
        raise ValueError(f"{len(names)} classes cannot be split in three")
    shuffled = sorted(names, key=lambda name: (hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest(), name))
    num_validation = max(1, round(FRACTIONS[1] * len(names)))
    num_test = max(1, round(FRACTIONS[2] * len(names)))
    num_train = len(names) - num_validation - num_test
    codes = [TRAIN] * num_train + [VALIDATION] * num_validation + [TEST] * num_test
    part_of = dict(zip(shuffled, codes, strict=True))
    return [part_of[name] for name in names]
