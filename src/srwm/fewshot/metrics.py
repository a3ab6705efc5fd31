"""What a few-shot run came to, as figures for a report."""

from collections.abc import Mapping
from typing import Any

from srwm.runs.charts import Chart, Measure
from srwm.runs.results import read_part

from .evaluation import FewShotEvaluation
from .recipes import RECIPES


def measures(result: Mapping[str, Any]) -> list[Measure]:
    """The figures of a run; see `Experiment.measures`."""
    found = []
    if result.get("test") is not None:
        test = read_part(FewShotEvaluation, result["test"], "test")
        entry = RECIPES.get(result.get("recipe", ""))
        paper = None if entry is None or entry.paper is None else entry.paper / 100
        interval = test.interval_episodes if test.interval_sets is None else test.interval_sets
        found.append(Measure("test accuracy, classes never seen", test.accuracy, interval, paper, percent=True))
    if result.get("score") is not None:
        found.append(Measure("best validation accuracy", result["score"], percent=True))
    return found


def charts(result: Mapping[str, Any]) -> list[Chart]:
    """What a test draws: nothing; see `Experiment.charts`."""
    return []
