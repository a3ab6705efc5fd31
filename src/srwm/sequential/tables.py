"""Results of streams as tables for a terminal, ours beside the paper's."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from srwm.runs.generic_results import run_table
from srwm.runs.results import read_part
from srwm.supervised.statistics import Measured

from .evaluation import StreamEvaluation
from .recipes import Figures


def result_table(result: Mapping[str, Any], figures: Figures) -> Table:
    """The results of a run."""
    return run_table(
        result,
        lambda title: evaluation_table(f"{title}: accuracy in %", read_part(StreamEvaluation, result["test"]), figures),
    )


def evaluation_table(title: str, tested: StreamEvaluation, figures: Figures) -> Table:
    """Accuracy in percent by order, source and instance, with the paper's below ours where there is one."""
    table = Table(title=escape(title))
    # A narrow terminal wraps an order between its sources, and never within a name.
    longest = max((len(source) for order in tested.orders for source in order.sources), default=0)
    table.add_column("order", min_width=longest + 1)
    table.add_column("source", min_width=longest)
    if figures:
        table.add_column("whose")
    for heading in (*(f"k={k}" for k in tested.instances), "total", "steps to recover"):
        table.add_column(heading, justify="right")
    ours = ["ours"] if figures else []
    for order in tested.orders:
        for index, segment in enumerate(order.segments):
            cells = [_percent(value.mean) for value in segment.instances]
            recovery = "-" if segment.recovery is None else f"{segment.recovery}"
            first = ", ".join(order.sources) if index == 0 else ""
            table.add_row(first, segment.source, *ours, *cells, segment.total.percent(), recovery)
            paper = figures.get(order.sources, {}).get(segment.source)
            if paper is not None and tested.instances == (1, 2, 3, 5, 10):
                table.add_row("", "", "paper", *(f"{value:.1f}" for value in paper), "")
    table.add_section()
    mean = Measured(tested.accuracy, tested.interval)
    table.add_row("all", "all", *ours, *[""] * len(tested.instances), mean.percent(), "")
    return table


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
