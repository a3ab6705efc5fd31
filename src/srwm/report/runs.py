"""A run as a report sees it: its recipe, its log, its result, and how to repeat it."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from srwm.errors import InputError
from srwm.experiments import experiment_in
from srwm.named_import import is_import_name
from srwm.runs.charts import Chart, Line, Measure
from srwm.runs.config import to_json
from srwm.runs.experiment import Experiment
from srwm.runs.metrics import read_metrics
from srwm.runs.run_folder import RunFolder

from ._curves import training_charts


@dataclass(frozen=True)
class ReportedRun:
    """One run."""

    label: str
    """What it is called in tables and legends."""
    folder: RunFolder
    """Where it lies."""
    experiment: Experiment
    """What it is a run of."""
    records: list[dict[str, Any]]
    """The lines of its log."""
    result: dict[str, Any] | None
    """The content of `result.json`; None if it has not ended."""

    @property
    def recipe(self) -> str:
        """The recipe's name."""
        return _recipe(self.folder)

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return _seed(self.folder)

    @property
    def measures(self) -> list[Measure]:
        """Its figures; none before it has ended."""
        return self.experiment.measures(self.result) if self.result else []

    @property
    def charts(self) -> list[Chart]:
        """Its curves: of the training, and of the test."""
        return [*training_charts(self.records), *(self.experiment.charts(self.result) if self.result else [])]

    @property
    def command(self) -> str:
        """What repeats it."""
        name = self.experiment.name
        words = ["srwm", "train", f"{name}/{self.recipe}" if is_import_name(name) else self.recipe]
        if self.recipe in self.experiment.recipes:
            before = _flat(to_json(self.experiment.recipes[self.recipe].config))
            after = _flat(self.folder.config)
            changed = {key: value for key, value in after.items() if before.get(key) != value and key != "seed"}
            words += [word for key, value in changed.items() for word in ("--set", f"{key}={_word(value)}")]
        if self.seed:
            words += ["--seed", str(self.seed)]
        # Quoted: it is there to be copied into a shell, and the words come from files.
        return shlex.join(words)


def read_runs(paths: list[Path]) -> list[ReportedRun]:
    """Read runs, in the order in which they are given.

    Raises:
        InputError: if a folder holds no run, a file of it is broken, or one is named twice.
    """
    folders = [RunFolder.open(path) for path in paths]
    if len({path.resolve() for path in paths}) != len(paths):
        raise InputError("a run is named twice; name each once")
    labels = _labels(folders)
    runs = [
        ReportedRun(
            label,
            folder,
            _experiment_of(folder),
            read_metrics(folder.metrics_path) if folder.metrics_path.exists() else [],
            folder.read_result(),
        )
        for label, folder in zip(labels, folders, strict=True)
    ]
    for run in runs:
        _check_result(run)
    return runs


def _experiment_of(folder: RunFolder) -> Experiment:
    experiment = experiment_in(folder.path)
    assert experiment is not None
    return experiment


def joined(runs: list[ReportedRun]) -> list[Chart]:
    """The charts of all runs; those of the same title become one, its lines named by run."""
    charts: dict[tuple[str, str], Chart] = {}
    for run in runs:
        for chart in run.charts:
            lines = chart.lines
            if len(runs) > 1:
                several = len(lines) > 1
                lines = tuple(
                    Line(f"{run.label}, {line.name}" if several else run.label, line.xs, line.ys) for line in lines
                )
            key = (chart.title, chart.x_label)
            before = charts[key].lines if key in charts else ()
            charts[key] = replace(chart, lines=(*before, *lines), compares=len(runs) > 1)
    return list(charts.values())


def _labels(folders: list[RunFolder]) -> list[str]:
    """The shortest names that tell runs apart: recipe, recipe and seed, or the folder's own."""
    recipes = [_recipe(folder) for folder in folders]
    with_seeds = [f"{name}, seed {_seed(folder)}" for name, folder in zip(recipes, folders, strict=True)]
    names = [folder.path.resolve().name for folder in folders]
    for labels in (recipes, with_seeds, names):
        if len(set(labels)) == len(labels):
            return labels
    return [f"{name} ({number})" for number, name in enumerate(names, start=1)]


def _check_result(run: ReportedRun) -> None:
    """Refuse a result that its kind cannot show, with the name of the file."""
    try:
        if run.result is not None:
            run.experiment.measures(run.result)
            run.experiment.charts(run.result)
    except InputError as error:
        raise InputError(f"{run.folder.result_path} is not the result of a run: {error}") from None


def _recipe(folder: RunFolder) -> str:
    name = folder.config.get("recipe", "custom")
    if not isinstance(name, str):
        raise InputError(f"{folder.path} has a broken configuration: recipe is {name!r}; expected a name")
    return name


def _seed(folder: RunFolder) -> int:
    seed = folder.config.get("seed", 0)
    if type(seed) is not int:
        raise InputError(f"{folder.path} has a broken configuration: seed is {seed!r}; expected a whole number")
    return seed


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _word(value: Any) -> str:
    """A value as it is written on the command line."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return ",".join(map(_word, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
