"""The results of a run on streams, as figures and curves for a report."""

from collections.abc import Mapping
from typing import Any

from srwm.runs.charts import Chart, Line, Measure
from srwm.runs.results import read_part
from srwm.supervised.statistics import Measured

from .evaluation import StreamEvaluation
from .recipes import RECIPES


def measures(result: Mapping[str, Any]) -> list[Measure]:
    """The figures of a run, by order, source and instance; see `Experiment.measures`."""
    if result.get("test") is None:
        return []
    tested = read_part(StreamEvaluation, result["test"])
    entry = RECIPES.get(result.get("recipe", ""))
    figures = entry.figures if entry else {}
    found = []
    for order in tested.orders:
        for segment in order.segments:
            paper = figures.get(order.sources, {}).get(segment.source)
            named: dict[str, Measured] = {
                f"k = {k}": each for k, each in zip(tested.instances, segment.instances, strict=True)
            }
            named["total"] = segment.total
            # The paper's figures are on these instances, and the total.
            printed = dict(zip((*(f"k = {k}" for k in (1, 2, 3, 5, 10)), "total"), paper or (), strict=False))
            for name, each in named.items():
                in_paper = printed[name] / 100 if name in printed else None
                where = f"{segment.source} in {', then '.join(order.sources)}"
                found.append(Measure(f"{where}: {name}", each.mean, each.interval, in_paper, percent=True))
    return found


def charts(result: Mapping[str, Any]) -> list[Chart]:
    """Accuracy along the stream, for each order; see `Experiment.charts`."""
    if result.get("test") is None:
        return []
    drawn = []
    for order in read_part(StreamEvaluation, result["test"]).orders:
        each = len(order.curve) // len(order.sources)
        marks = tuple((float(place * each), source) for place, source in enumerate(order.sources))
        line = Line("accuracy", [float(step) for step in range(len(order.curve))], order.curve)
        title = f"Accuracy along the stream: {', then '.join(order.sources)}"
        drawn.append(Chart(title, "step of the stream", (line,), percent=True, marks=marks))
    return drawn
