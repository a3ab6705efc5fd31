"""Which levels an agent trains on and which it is tested on; the two never share one."""

from dataclasses import dataclass
from itertools import combinations

from srwm.errors import InputError

from .options import MAX_LEVEL, Distribution


@dataclass(frozen=True)
class LevelRange:
    """Levels that follow each other, by their numbers."""

    start: int
    """The first level."""
    count: int
    """How many there are."""

    def __post_init__(self) -> None:
        if self.start < 0 or self.count < 1 or self.start + self.count > MAX_LEVEL:
            raise InputError(
                f"expected at least one level, from 0 to {MAX_LEVEL - 1}, got {self.start} to "
                f"{self.start + self.count - 1}"
            )

    @property
    def levels(self) -> range:
        """The numbers of the levels."""
        return range(self.start, self.start + self.count)

    def overlaps(self, other: "LevelRange") -> bool:
        """Whether a level lies in both."""
        return self.start < other.levels.stop and other.start < self.levels.stop

    def __str__(self) -> str:
        return f"{self.start}-{self.levels.stop - 1}"


@dataclass(frozen=True)
class LevelSplits:
    """What is trained on, what is looked at on the way, and what is tested on."""

    train: LevelRange
    """Levels to learn from."""
    validation: LevelRange = LevelRange(500, 200)
    """Levels to look at during training; the paper chose nothing by them."""
    tests: tuple[LevelRange, ...] = (LevelRange(1000, 200), LevelRange(1200, 200), LevelRange(1400, 200))
    """Levels to test on; results are means over these splits."""

    def __post_init__(self) -> None:
        check_apart(self.named())

    def named(self) -> dict[str, LevelRange]:
        """Give all of them: `train`, `validation`, `test-1` and so on."""
        tests = {f"test-{number}": split for number, split in enumerate(self.tests, start=1)}
        return {"train": self.train, "validation": self.validation, **tests}


def check_apart(ranges: dict[str, LevelRange]) -> None:
    """Refuse ranges of levels that overlap.

    Raises:
        InputError: it names the two that do.
    """
    for (name, one), (other_name, other) in combinations(ranges.items(), 2):
        if one.overlaps(other):
            raise InputError(
                f"the levels {one} of {name!r} and {other} of {other_name!r} overlap; an agent would be tested on "
                "levels that it has seen"
            )


EASY_SPLITS = LevelSplits(train=LevelRange(0, 200))
"""The paper's splits for the easy distribution."""
MEMORY_SPLITS = LevelSplits(train=LevelRange(0, 500))
"""Those of the memory distribution, where agents train on 500 levels."""


def splits_of(distribution: Distribution) -> LevelSplits:
    """Give the paper's splits for a distribution."""
    return MEMORY_SPLITS if distribution == "memory" else EASY_SPLITS
