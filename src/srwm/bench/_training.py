"""How fast recipes train: whole steps, timed interleaved, as a table and a file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from srwm.data import ImageSet
from srwm.runs.atomic import failures_as_sentences
from srwm.runs.config import override
from srwm.runs.devices import choose_device, hardware, set_deterministic
from srwm.runs.loop import LoopOptions, Trainer
from srwm.runs.recipes import Recipe, find_recipe

from ._measure import interleaved_ms


@dataclass(frozen=True)
class TrainingRow:
    """One recipe's speed."""

    recipe: str
    precision: str
    step_ms: float
    item: str
    items_per_step: int
    items_per_second: float


@dataclass(frozen=True)
class TrainingBench:
    """What `srwm bench` times of an experiment: the whole training step of its recipes, interleaved, on random data."""

    recipes: Mapping[str, Recipe]
    """Those of the experiment."""
    trainer: Callable[[Any, torch.device], Trainer]
    """From a configuration and a device to a trainer on random data."""
    loop_options: Callable[[Any], LoopOptions]
    """From a configuration to what says how much a step works through."""
    title: str
    """Of the table."""
    note: str = ""
    """Printed behind the line on the machine."""
    budget_s: float = 4.0
    """About how long each recipe is measured."""

    def run(
        self,
        names: Sequence[str],
        device_name: str,
        assignments: Sequence[str],
        json_path: Path | None,
        budget_s: float | None = None,
    ) -> int:
        """Time recipes, and print a table.

        Args:
            names: of the recipes.
            device_name: "auto", "cpu" or "cuda".
            assignments: changes to all of them, such as `train.precision=bfloat16`.
            json_path: where to write the results too; None for nowhere.
            budget_s: about how long each is measured; None for as long as is usual here.

        Returns:
            The exit status.
        """
        device = choose_device(device_name)
        configs = [override(find_recipe(name, self.recipes).config, assignments) for name in names]
        set_deterministic(all(config.train.deterministic for config in configs))
        steps: dict[str, Callable[[], object]] = {
            config.recipe: _stepper(self.trainer(config, device).train_step) for config in configs
        }
        times = interleaved_ms(steps, device, self.budget_s if budget_s is None else budget_s)
        rows = []
        for config in configs:
            options, step_ms = self.loop_options(config), times[config.recipe]
            number, precision = options.items_per_step, config.train.precision
            rows.append(TrainingRow(config.recipe, precision, step_ms, options.item, number, number / step_ms * 1e3))
        about = {**hardware(device), "date": date.today().isoformat(), "set": list(assignments)}
        console = Console()
        console.print(_table(self.title, rows))
        console.print(f"{about['device']}, torch {about['versions']['torch']}, {about['date']}{self.note}")
        if json_path is not None:
            content = {"about": about, "rows": [asdict(row) for row in rows]}
            with failures_as_sentences(json_path):
                json_path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        return 0


def random_sets(names: Sequence[str], classes: int, per_class: int, channels: int, image_size: int) -> list[ImageSet]:
    """Random images of a shape: so many classes under each name."""
    generator = torch.Generator().manual_seed(0)
    shape, words = (classes * per_class, channels, image_size, image_size), [str(i) for i in range(classes)]
    return [
        ImageSet.of_counts(
            name, torch.randint(256, shape, dtype=torch.uint8, generator=generator), [per_class] * classes, words
        )
        for name in names
    ]


def _stepper(train_step: Callable[[int], None]) -> Callable[[], None]:
    """A call that does the next training step."""
    count = iter(range(10**9))
    return lambda: train_step(next(count))


def _table(title: str, rows: Sequence[TrainingRow]) -> Table:
    table = Table("recipe", "precision", title=title)
    item = rows[0].item
    for heading in ("ms a step", f"{item} a step", f"{item}/s"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.recipe, row.precision, f"{row.step_ms:.3f}", f"{row.items_per_step:,}", f"{row.items_per_second:,.0f}"
        )
    return table
