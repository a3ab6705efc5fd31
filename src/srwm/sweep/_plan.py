"""The plan of a sweep: which runs it is made of, what their folders are called, and the file that holds it."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from srwm.errors import InputError
from srwm.runs.json_objects import MOST_BYTES, parse_object
from srwm.runs.reading import read_file

from ._grid import MAX_RUNS, Axis, Setting, refuse_twice, sample, settings, words

FORMAT = 1
PLAN_FILE = "sweep.json"
LONGEST_NAME = 200
"""File systems take 255 bytes; the rest is for those who add to the name."""

Check = Callable[[str, Sequence[str]], None]
"""Takes a recipe's name and `KEY=VALUE` words, and raises InputError if no run can be made of them."""


@dataclass(frozen=True)
class Job:
    """One run."""

    name: str
    """The name of its folder."""
    recipe: str
    setting: Setting
    """Where it stands in the grid."""
    overrides: tuple[str, ...]
    """All changes to the recipe as `KEY=VALUE`: those of the whole sweep, then those of the grid."""
    seed: int
    test: bool
    """Whether it is tested when it is trained."""

    def folder(self, out: Path) -> Path:
        """The run folder in a sweep's folder; only the run itself writes there."""
        return out / "runs" / self.name

    def log(self, out: Path) -> Path:
        """What the run prints."""
        return out / "logs" / f"{self.name}.txt"

    def words(self, out: Path) -> list[str]:
        """What follows `srwm train`."""
        changes = [word for change in self.overrides for word in ("--set", change)]
        options = ["--resume"] if self.test else ["--resume", "--no-test"]
        return [self.recipe, *changes, "--seed", str(self.seed), "--out", str(self.folder(out)), *options]


@dataclass(frozen=True)
class Plan:
    """A grid of recipes, settings and seeds."""

    recipes: tuple[str, ...]
    grid: tuple[Axis, ...]
    fixed: Setting
    """What every run sets."""
    seeds: tuple[int, ...]
    sample: int | None
    """How many settings of the grid are tried; None for all."""
    sample_seed: int
    test: bool
    """Whether the runs are tested when they are trained."""
    jobs: tuple[Job, ...]

    def check(self, check: Check) -> None:
        """Try every recipe with every setting before anything runs.

        Raises:
            InputError: from `check`.
        """
        for recipe, overrides in dict.fromkeys((job.recipe, job.overrides) for job in self.jobs):
            check(recipe, overrides)

    def to_json(self) -> str:
        """Write the plan as text; equal plans give equal text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"


def make_plan(
    recipes: Sequence[str],
    *,
    grid: Sequence[Axis] = (),
    fixed: Setting = (),
    seeds: Sequence[int] = (0,),
    sample_size: int | None = None,
    sample_seed: int = 0,
    test: bool = True,
) -> Plan:
    """Multiply recipes, the settings of a grid and seeds out into jobs.

    Args:
        recipes: names of recipes.
        grid: axes; see `parse_grid`.
        fixed: what every run sets.
        seeds: one run each.
        sample_size: try only this many settings of the grid, drawn at random, the same for every recipe.
        sample_seed: draws them.
        test: whether the runs are tested when they are trained.

    Returns:
        The plan. The jobs of one recipe and setting stand together, the seeds in order.

    Raises:
        InputError: if a recipe or key comes twice, or there is nothing to sample.
    """
    refuse_twice(recipes, "the recipe")
    varied = {key for axis in grid for point in axis for key, _ in point}
    for key in ("seed", "recipe"):
        if key in varied or key in dict(fixed):
            raise InputError(f"{key} is not for --grid or --set; recipes are words of their own, seeds go to --seeds")
    for key, _ in fixed:
        if key in varied:
            raise InputError(f"{key} is both in the grid and in --set; give it once")
    chosen = settings(grid)
    if sample_size is not None:
        if not grid:
            raise InputError(f"--sample {sample_size} needs a --grid to draw from")
        chosen = sample(chosen, sample_size, sample_seed)
    if (count := len(recipes) * len(chosen) * len(seeds)) > MAX_RUNS:
        raise InputError(f"{count:,} runs are more than a sweep takes ({MAX_RUNS:,}); give fewer recipes or seeds")
    jobs = _named(
        [
            Job("", recipe, setting, tuple(words((*fixed, *setting))), seed, test)
            for recipe in recipes
            for setting in chosen
            for seed in seeds
        ],
        _short_keys(varied),
    )
    return Plan(tuple(recipes), tuple(grid), fixed, tuple(seeds), sample_size, sample_seed, test, jobs)


def read_plan(out: Path) -> Plan | None:
    """Read the plan of the sweep in a folder; None where there is none.

    Raises:
        InputError: if the file is broken or of a newer format.
    """
    path = out / PLAN_FILE
    if not path.exists():
        return None
    data = read_file(path, MOST_BYTES)
    try:
        plan = _from_json(parse_object(data))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not the plan of a sweep ({error}); choose another --out") from error
    if plan.to_json().encode() != data:
        raise InputError(f"{path} was changed by hand or by another version of srwm; choose another --out")
    return plan


def explain_difference(old: Plan, new: Plan) -> str | None:
    """Say in what two plans differ first; None if they are equal."""
    if old == new:
        return None
    for name, option in [
        ("recipes", "the recipes"),
        ("grid", "--grid"),
        ("fixed", "--set"),
        ("seeds", "--seeds"),
        ("sample", "--sample"),
        ("sample_seed", "--sample-seed"),
        ("test", "whether the runs are tested"),
    ]:
        before, now = getattr(old, name), getattr(new, name)
        if before != now:
            return f"{option} was {_show(before)} and is now {_show(now)}"
    return "the names of its runs differ"


def short_label(job: Job, plan: Plan) -> str:
    """Write a job's setting for people."""
    varied = {key for axis in plan.grid for point in axis for key, _ in point}
    short = _short_keys(varied)
    return ", ".join(f"{short[key]}={value}" for key, value in job.setting)


def _short_keys(keys: set[str]) -> dict[str, str]:
    """Shorten dotted keys to their last word where the last words are all different."""
    last = {key: key.rpartition(".")[2] for key in keys}
    return last if len(set(last.values())) == len(keys) else {key: key for key in keys}


def _named(jobs: Sequence[Job], short: dict[str, str]) -> tuple[Job, ...]:
    named: list[Job] = []
    taken: set[str] = set()
    for job in jobs:
        parts = [job.recipe, *(f"{short[key]}={value}" for key, value in job.setting), f"seed={job.seed}"]
        exact = ",".join(parts)
        name = re.sub(r"[^A-Za-z0-9._+=,-]", "_", exact).lstrip(".-")
        # Some file systems take `A` and `a` for one name.
        if name != exact or len(name) > LONGEST_NAME or name.casefold() in taken:
            mark = hashlib.sha256(json.dumps([job.recipe, job.setting, job.seed]).encode()).hexdigest()[:10]
            name = f"{name[: LONGEST_NAME - 11]},{mark}"
        taken.add(name.casefold())
        named.append(replace(job, name=name))
    return tuple(named)


def _from_json(data: dict[str, Any]) -> Plan:
    if data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r}, and this version of srwm reads {FORMAT}")

    def setting(pairs: list[list[str]]) -> Setting:
        return tuple((str(key), str(value)) for key, value in pairs)

    # The jobs are worked out again: a folder's name is never taken from a file.
    return make_plan(
        [str(recipe) for recipe in data["recipes"]],
        grid=[tuple(setting(point) for point in axis) for axis in data["grid"]],
        fixed=setting(data["fixed"]),
        seeds=[int(seed) for seed in data["seeds"]],
        sample_size=None if data["sample"] is None else int(data["sample"]),
        sample_seed=int(data["sample_seed"]),
        test=bool(data["test"]),
    )


def _show(value: object) -> str:
    text = "not given" if value is None or value == () else json.dumps(value)
    return text if len(text) <= 160 else f"{text[:150]}..."
