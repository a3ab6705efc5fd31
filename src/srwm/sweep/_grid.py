"""What a sweep varies: axes of settings, the paper's own search space, seeds, and a random part of a grid."""

import hashlib
import itertools
import re
from collections.abc import Sequence

from srwm.errors import InputError

Setting = tuple[tuple[str, str], ...]
"""Changes to a recipe: pairs of a dotted key and a value, both as one writes them after `--set`."""

Axis = tuple[Setting, ...]
"""What is tried one after the other. A point of an axis may set several keys that only make sense together."""

MAX_SEEDS = 10_000
MAX_RUNS = 100_000


def _one_key(key: str, *values: str) -> Axis:
    return tuple(((key, value),) for value in values)


PAPER: tuple[Axis, ...] = (
    _one_key("model.num_layers", "2", "3", "4"),
    # The feed-forward block is four or eight times as wide as the model.
    tuple(
        (("model.hidden_size", str(size)), ("model.ff_size", str(factor * size)))
        for size in (128, 256)
        for factor in (4, 8)
    ),
    _one_key("model.dropout", "0.0", "0.1", "0.2", "0.3"),
    _one_key("model.encoder_dropout", "0.0", "0.1", "0.2", "0.3"),
    # The warm-up schedule sets the learning rate by itself.
    (
        *(
            (("optimizer.schedule", "constant"), ("optimizer.learning_rate", rate))
            for rate in ("0.001", "0.0003", "0.0001")
        ),
        (("optimizer.schedule", "noam"),),
    ),
)
"""The search space of the paper's appendix: 3 x 4 x 4 x 4 x 4 = 768 settings, for the 16 heads of the recipes."""

NAMED_GRIDS = {"paper": PAPER}


def parse_grid(words: Sequence[str]) -> tuple[Axis, ...]:
    """Read the axes of a grid from words such as `model.num_layers=2,3` or the name of a grid.

    Args:
        words: what stood after each `--grid`.

    Returns:
        The axes, in the order given.

    Raises:
        InputError: if a word is neither a named grid nor `KEY=V1,V2,...`, or a key or value comes twice.
    """
    axes: list[Axis] = []
    for word in words:
        if word in NAMED_GRIDS:
            axes += NAMED_GRIDS[word]
            continue
        key, equals, text = word.partition("=")
        if not (key and equals):
            names = ", ".join(repr(name) for name in NAMED_GRIDS)
            raise InputError(
                f"--grid {word}: expected KEY=V1,V2,... (as model.num_layers=2,3) or a named grid: {names}"
            )
        values = _split(text)
        if not all(values):
            raise InputError(f"--grid {word}: a value is missing; write KEY=V1,V2,... with no space around the commas")
        refuse_twice(values, f"--grid {word}: the value")
        axes.append(_one_key(key, *values))
    refuse_twice([key for axis in axes for key in _keys(axis)], "--grid: the key")
    return tuple(axes)


def parse_sets(words: Sequence[str]) -> Setting:
    """Read the settings that all runs share, from words such as `train.batch_size=64`.

    Raises:
        InputError: if a word is not `KEY=VALUE`, or a key comes twice.
    """
    pairs = []
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise InputError(f"--set {word}: expected KEY=VALUE, as model.num_layers=2")
        pairs.append((key, value))
    refuse_twice([key for key, _ in pairs], "--set: the key")
    return tuple(pairs)


def parse_seeds(words: Sequence[str]) -> tuple[int, ...]:
    """Read seeds from words such as `0`, `1,2` and `5-9` (both ends included).

    Raises:
        InputError: if a word is no such thing, a range runs backwards, or a seed comes twice.
    """
    seeds: list[int] = []
    for part in (part for word in words for part in word.split(",")):
        found = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", part)
        if not found:
            raise InputError(f"--seeds: {part!r} is no seed; write numbers such as 0 1 2, or a range such as 0-4")
        first = int(found[1])
        last = int(found[2] or found[1])
        if last < first:
            raise InputError(f"--seeds: the range {part} runs backwards; write {last}-{first}")
        if last - first >= MAX_SEEDS:
            raise InputError(f"--seeds: the range {part} holds more than {MAX_SEEDS:,} seeds")
        seeds += range(first, last + 1)
        if len(seeds) > MAX_RUNS:
            raise InputError(f"--seeds: more than {MAX_RUNS:,} seeds")
    refuse_twice([str(seed) for seed in seeds], "--seeds: the seed")
    return tuple(seeds)


def settings(axes: Sequence[Axis]) -> list[Setting]:
    """Multiply axes out: every combination, the last axis turning fastest; one empty setting for no axes.

    Raises:
        InputError: if there are more than anyone can run.
    """
    count = 1
    for axis in axes:
        count *= len(axis)
    if count > MAX_RUNS:
        raise InputError(f"--grid: {count:,} settings are more than a sweep takes ({MAX_RUNS:,}); give fewer values")
    return [tuple(itertools.chain.from_iterable(points)) for points in itertools.product(*axes)]


def sample(grid: Sequence[Setting], count: int, seed: int) -> list[Setting]:
    """Choose some settings of a grid at random, and keep them in the grid's order.

    The choice depends on the settings and the seed alone, on every machine and version of Python, and a larger sample
    of the same grid holds every smaller one.

    Raises:
        InputError: if `count` is not between 1 and the size of the grid.
    """
    if not 1 <= count <= len(grid):
        raise InputError(f"--sample {count}: the grid has {len(grid):,} settings; ask for 1 to {len(grid):,} of them")

    def lot(index: int) -> bytes:
        return hashlib.sha256(f"{seed} {words(grid[index])}".encode()).digest()

    return [grid[index] for index in sorted(sorted(range(len(grid)), key=lot)[:count])]


def words(setting: Setting) -> list[str]:
    """Write a setting as the words that follow `--set`."""
    return [f"{key}={value}" for key, value in setting]


def _keys(axis: Axis) -> list[str]:
    return list(dict.fromkeys(key for point in axis for key, _ in point))


def _split(text: str) -> list[str]:
    """Split at the commas that stand outside of brackets, so that a value may be a list."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def refuse_twice(given: Sequence[str], what: str) -> None:
    """Refuse words of which one comes twice."""
    seen = set[str]()
    for text in given:
        if text in seen:
            raise InputError(f"{what} {text} is given twice")
        seen.add(text)
