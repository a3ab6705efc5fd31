"""The results of a run on a language, as figures and curves for a report."""

import math
from collections.abc import Mapping
from typing import Any

from srwm.runs.charts import Chart, Line, Measure
from srwm.runs.results import read_part

from .evaluation import LanguagesEvaluation
from .recipes import RECIPES


def measures(result: Mapping[str, Any]) -> list[Measure]:
    """Sequences that are right at every position, and right positions, by length; see `Experiment.measures`."""
    if result.get("test") is None:
        return []
    entry = RECIPES.get(result.get("recipe", ""))
    figures = entry.figures if entry else {}
    found = []
    for each in read_part(LanguagesEvaluation, result["test"]).by_length:
        paper = figures[each.lengths] / 100 if each.lengths in figures else None
        found.append(Measure(f"whole sequences, length {each.lengths}", each.whole, None, paper, percent=True))
        found.append(Measure(f"positions, length {each.lengths}", each.positions, percent=True))
    return found


def charts(result: Mapping[str, Any]) -> list[Chart]:
    """Whole sequences over their length, and accuracy along the longest; see `Experiment.charts`."""
    if result.get("test") is None:
        return []
    tested = read_part(LanguagesEvaluation, result["test"])
    lengths = [math.log10(each.longest) for each in tested.by_length]
    whole = Line("right at every position", lengths, [each.whole for each in tested.by_length])
    positions = [math.log10(each.last) for each in tested.by_position]
    along = Line("right positions", positions, [each.accuracy for each in tested.by_position])
    longest = tested.by_length[-1].longest
    return [
        Chart("Sequences right at every position", "length, as a power of ten", (whole,), percent=True),
        Chart(f"Accuracy along sequences of {longest:,}", "position, as a power of ten", (along,), percent=True),
    ]
