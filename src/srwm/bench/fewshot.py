"""How fast a recipe of few-shot learning trains on this machine."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from srwm.data import ImageSet
from srwm.data.sources import SOURCES
from srwm.errors import InputError
from srwm.fewshot.config import FewShotConfig, TaskConfig
from srwm.fewshot.recipes import recipe
from srwm.fewshot.trainer import FewShotTrainer
from srwm.runs.config import override
from srwm.runs.devices import choose_device, hardware, set_deterministic

from ._measure import interleaved_ms


@dataclass(frozen=True)
class Row:
    """One recipe's speed."""

    recipe: str
    precision: str
    step_ms: float
    images_per_step: int
    images_per_second: float


def bench_fewshot(
    recipes: Sequence[str], device_name: str, assignments: Sequence[str], json_path: Path | None, budget_s: float = 4.0
) -> int:
    """Time the whole training step of recipes, in turns, on random images of the right shape.

    Args:
        recipes: names of recipes.
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
    table = Table("recipe", "precision", title="Training, whole step")
    for heading in ("ms a step", "images a step", "images/s"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.recipe, row.precision, f"{row.step_ms:.3f}", f"{row.images_per_step:,}", f"{row.images_per_second:,.0f}"
        )
    console = Console()
    console.print(table)
    about = {**hardware(device), "date": date.today().isoformat(), "set": list(assignments)}
    console.print(f"{about['device']}, torch {about['versions']['torch']}, {about['date']}")
    if json_path is not None:
        content: dict[str, Any] = {"about": about, "rows": [asdict(row) for row in rows]}
        json_path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0


def _stepper(config: FewShotConfig, device: torch.device) -> Callable[[], object]:
    """A call that does the next training step."""
    channels, size = _image_shape(config.task)
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (64 * 20, channels, size, size), dtype=torch.uint8, generator=generator)
    classes = [str(i) for i in range(64)]
    image_set = ImageSet.of_counts("random/train", images, [20] * 64, classes)
    trainer = FewShotTrainer(replace(config, seed=0), image_set, image_set, device)
    count = iter(range(10**9))
    return lambda: trainer.train_step(next(count))


def _image_shape(task: TaskConfig) -> tuple[int, int]:
    """Channels and size of the images that the task asks for, or of its source."""
    source = SOURCES.get(task.source)
    channels = task.channels or (source.channels if source else None)
    size = task.image_size or (source.image_size if source else None)
    if channels is None or size is None:
        raise InputError(f"the images of {task.source!r} are not looked at here; set task.channels and task.image_size")
    return channels, size


def _row(config: FewShotConfig, step_ms: float) -> Row:
    task = config.task
    images = config.train.batch_size * (task.ways * task.shots + task.queries)
    return Row(config.recipe, config.train.precision, step_ms, images, images / step_ms * 1e3)
