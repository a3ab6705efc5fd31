"""How fast a recipe of streams trains on this machine."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from srwm.data import ImageSet
from srwm.runs.config import override
from srwm.runs.devices import choose_device, hardware, set_deterministic
from srwm.sequential.bank import Bank, distinct_sources, set_names
from srwm.sequential.config import SequentialConfig, StreamConfig
from srwm.sequential.recipes import recipe
from srwm.sequential.trainer import SequentialTrainer

from ._measure import interleaved_ms
from .fewshot import Row

_CLASSES = 32


def bench_sequential(
    recipes: Sequence[str], device_name: str, assignments: Sequence[str], json_path: Path | None, budget_s: float = 4.0
) -> int:
    """Time the whole training step of recipes, in turns, on random images of the right shape.

    Args:
        recipes: names of recipes of streams.
        device_name: "auto", "cpu" or "cuda".
        assignments: changes to all of them, such as `train.precision=bfloat16`.
        json_path: where to write the results too; None for nowhere.
        budget_s: about how long each is measured.

    Returns:
        The exit status.
    """
    device = choose_device(device_name)
    configs = [override(recipe(name).config, assignments) for name in recipes]
    set_deterministic(all(config.train.deterministic for config in configs))
    steps = {config.recipe: _stepper(config, device) for config in configs}
    times = interleaved_ms(steps, device, budget_s)
    rows = [_row(config, times[config.recipe]) for config in configs]
    table = Table("recipe", "precision", title="Training on streams, whole step")
    for heading in ("ms a step", "images a step", "images/s"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.recipe, row.precision, f"{row.step_ms:.3f}", f"{row.images_per_step:,}", f"{row.images_per_second:,.0f}"
        )
    console = Console()
    console.print(table)
    about = {**hardware(device), "date": date.today().isoformat(), "set": list(assignments)}
    console.print(f"{about['device']}, torch {about['versions']['torch']}, {about['date']}; trimmed images count, too")
    if json_path is not None:
        content = {"about": about, "rows": [asdict(row) for row in rows]}
        json_path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0


def _stepper(config: SequentialConfig, device: torch.device) -> Callable[[], object]:
    """A call that does the next training step."""
    bank = _random_bank(config.stream)
    trainer = SequentialTrainer(replace(config, seed=0), bank, bank, device)
    count = iter(range(10**9))
    return lambda: trainer.train_step(next(count))


def _random_bank(stream: StreamConfig) -> Bank:
    generator = torch.Generator().manual_seed(0)
    classes, per_class = max(_CLASSES, stream.ways), stream.per_class + 1
    shape = (classes * per_class, stream.channels, stream.image_size, stream.image_size)
    sets = [
        ImageSet.of_counts(
            name,
            torch.randint(256, shape, dtype=torch.uint8, generator=generator),
            [per_class] * classes,
            [str(i) for i in range(classes)],
        )
        for name in set_names(stream)
    ]
    words = distinct_sources(stream)
    return Bank.of_sets(set_names(stream), sets, [words.index(word) for word in stream.sources])


def _row(config: SequentialConfig, step_ms: float) -> Row:
    images = config.train.batch_size * config.stream.length
    return Row(config.recipe, config.train.precision, step_ms, images, images / step_ms * 1e3)
