"""Results of continual learning as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from srwm.runs.generic_results import run_table
from srwm.runs.results import read_part

from .measures import ContinualEvaluation, TaskMatrix


def result_table(result: Mapping[str, Any]) -> Table:
    """The results of a run, from the content of `result.json`."""
    return run_table(
        result,
        lambda title: evaluation_table(f"{title}: accuracy in %", read_part(ContinualEvaluation, result["test"])),
    )


def evaluation_table(title: str, tested: ContinualEvaluation, figures: Mapping[str, float] | None = None) -> Table:
    """Accuracy in percent on each task so far after each task, for each order of the sources.

    Args:
        title: of the table.
        tested: what was measured.
        figures: what others measured in this setting, in percent, by who did.
    """
    table = Table(title=escape(title))
    most = max(len(order.tasks) for order in tested.orders)
    table.add_column("after")
    for number in range(most):
        table.add_column(f"task {number + 1}", justify="right")
    table.add_column("all so far", justify="right")
    for order in tested.orders:
        table.add_section()
        _add_order(table, order, most)
    for name, value in (figures or {}).items():
        table.add_row(escape(name), *[""] * most, f"{value:.1f}")
    return table


def _add_order(table: Table, order: TaskMatrix, most: int) -> None:
    last = len(order.tasks) - 1
    for after, (name, row) in enumerate(zip(order.tasks, order.matrix, strict=True)):
        cells = [f"{100 * value.mean:.1f}" for value in row]
        mean = sum(value.mean for value in row) / len(row)
        whole = order.accuracy.percent() if after == last else f"{100 * mean:.1f}"
        table.add_row(f"{after + 1}: {escape(name)}", *cells, *[""] * (most - len(cells)), whole)
    if order.forgetting is not None:
        table.add_row("forgetting", *[""] * most, order.forgetting.percent())
