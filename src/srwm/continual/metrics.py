"""The results of a run of continual learning, as figures and curves for a report."""

from collections.abc import Mapping
from typing import Any

from srwm.runs.charts import Chart, Line, Measure
from srwm.runs.results import read_part

from .measures import ContinualEvaluation


def measures(result: Mapping[str, Any]) -> list[Measure]:
    """The figures of a run, by order and task; see `Experiment.measures`."""
    if result.get("test") is None:
        return []
    found = []
    for order in read_part(ContinualEvaluation, result["test"]).orders:
        where = ", then ".join(dict.fromkeys(order.tasks))
        each = f"{where}, {len(order.tasks)} tasks"
        found.append(
            Measure(f"{each}: accuracy in the end", order.accuracy.mean, order.accuracy.interval, percent=True)
        )
        if order.forgetting is not None:
            value = order.forgetting
            found.append(Measure(f"{each}: forgetting", value.mean, value.interval, percent=True))
        for after, row in enumerate(order.matrix):
            found += [
                Measure(f"{each}: task {task + 1} after task {after + 1}", value.mean, value.interval, percent=True)
                for task, value in enumerate(row)
            ]
    return found


def charts(result: Mapping[str, Any]) -> list[Chart]:
    """Accuracy on each task along the sequence, for each order; see `Experiment.charts`."""
    if result.get("test") is None:
        return []
    drawn = []
    for order in read_part(ContinualEvaluation, result["test"]).orders:
        lines = tuple(
            Line(
                f"task {task + 1}: {name}",
                [float(after + 1) for after in range(task, len(order.tasks))],
                [order.matrix[after][task].mean for after in range(task, len(order.tasks))],
            )
            for task, name in enumerate(order.tasks)
        )
        title = f"What is known of each task: {', then '.join(order.tasks)}"
        drawn.append(Chart(title, "tasks learnt", lines, percent=True))
    return drawn
