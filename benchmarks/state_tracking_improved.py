"""Plans of `benchmarks/state_tracking.py` for what its first table left open.

Noise in the state, weights chosen as the paper chooses them, and the rows of the table whose recipes changed.
"""

from collections.abc import Sequence

from state_tracking_runs import MEMORIES, Run, by_recipe, runs

_COUNTING = ("anbn", "anbncn", "shuffle-2", "dyck-1")
_SMALL = "model.hidden_size=16 model.num_heads=2 model.ff_size=32"
_AS_PUBLISHED = (
    "train.validation_lengths=2-50,51-100 train.validate_every=50 train.stop_at=1 train.total_steps=4000 "
    "optimizer.decay_steps=0"
)
"""Looked at every 50 steps at the lengths that are reported, and ended once all is right there."""


def noise(seeds: Sequence[int] | None) -> list[Run]:
    """Noise in the state: how much, how often, and what else it helps than products in S3."""

    def with_noise(share: float, every: int, changes: str = "") -> str:
        return f"train.state_noise={share} train.state_noise_every={every} {changes}"

    products = {
        "none": "train.state_noise=0",
        **{f"{share} every 4": with_noise(share, 4) for share in (0.1, 0.2, 0.3, 0.5, 1.0)},
        "0.3 every 2": with_noise(0.3, 2),
        "0.3 every 8": with_noise(0.3, 8),
        "0.3 every 4, 2 to 16": with_noise(0.3, 4, "task.shortest=2"),
        "0.3 every 4, 4 heads": with_noise(0.3, 4, "model.num_heads=4"),
        "0.3 every 4, rate 1e-3": with_noise(0.3, 4, "optimizer.learning_rate=0.001"),
        "0.3 every 4, may forget 50%": with_noise(0.3, 4, "model.memory_options.forget_max=0.5"),
    }
    rule = {
        "none": "train.state_noise=0",
        "0.1 every 4": with_noise(0.1, 4),
        "0.3 every 4": with_noise(0.3, 4),
        "0.3 every 4, unit keys": with_noise(0.3, 4, "model.memory_options.key_map=l2"),
    }
    others = {
        "none": "train.state_noise=0",
        "0.1 every 10": with_noise(0.1, 10),
        "0.3 every 10": with_noise(0.3, 10),
    }
    first = {
        "none": "train.state_noise=0 task.curriculum.sequence_accuracy=0.9",
        "0.1 every 4": with_noise(0.1, 4, "task.curriculum.sequence_accuracy=0.9"),
        "0.3 every 4": with_noise(0.3, 4, "task.curriculum.sequence_accuracy=0.9"),
    }
    found: list[Run] = []
    for seed in seeds or (10, 11):
        options = {"looks": (1000, 2000), "look_lengths": ("2-16", "64", "256")}
        found += runs("a5", first, (seed,), **options)
        found += runs("s3-noise", products, (seed,), **options)
        found += runs("s3-srwm", rule, (seed,), common="train.total_steps=4000", **options)
        for task in ("cups-3", "sum-mod-3", "parity"):
            for memory in ("", "-srwm"):
                found += runs(task + memory, others, (seed,))
    return found


def counting_as_published(seeds: Sequence[int] | None) -> list[Run]:
    """Counting with weights chosen at 2 to 50 and 51 to 100: which setting gets to 100 / 100 at any time?"""
    settings = {
        "width 16, rate 3e-3": f"{_SMALL} optimizer.learning_rate=0.003",
        "width 16, rate 1e-3": f"{_SMALL} optimizer.learning_rate=0.001",
        "width 64, rate 3e-3": "model.hidden_size=64 model.ff_size=128 optimizer.learning_rate=0.003",
        "width 64, rate 3e-4": "model.hidden_size=64 model.ff_size=128 optimizer.learning_rate=0.0003",
    }
    return [
        run
        for seed in seeds or (10, 11)
        for task in _COUNTING
        for memory in ("", "-srwm", "-lstm")
        for run in runs(task + memory, settings, (seed,), common=_AS_PUBLISHED)
    ]


def improved(seeds: Sequence[int] | None) -> list[Run]:
    """What the table is to have next, with three seeds and every memory; what takes longest and tells most comes first.

    A5 with longer sequences only at 90% right, S3 by its recipe, and counting with weights chosen as published.
    """
    seeds = seeds or (0, 1, 2)
    late = "task.curriculum.sequence_accuracy=0.9"
    found = runs("a5", {"0.9": late, "0.9, noise": f"{late} train.state_noise=0.3 train.state_noise_every=4"}, seeds)
    most = ("", "-srwm", "-lstm")
    for memories in (most, tuple(each for each in MEMORIES if each not in most)):
        for seed in seeds:
            found += by_recipe(["s3-noise"] if "" in memories else [], seed)
            found += by_recipe([f"s3{memory}" for memory in memories], seed)
            for name in (task + memory for task in _COUNTING for memory in memories):
                width = "model.hidden_size=64" if name.endswith("-lstm") else _SMALL
                settings = {"as published": f"{width} optimizer.learning_rate=0.003"}
                found += runs(name, settings, (seed,), common=_AS_PUBLISHED)
    return found
