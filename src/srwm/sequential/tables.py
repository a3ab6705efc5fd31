"""Results of streams as tables for a terminal, ours beside the paper's."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from srwm.runs.generic_results import run_table
from srwm.runs.results import read_part
from srwm.supervised.statistics import Measured, t_95

from .evaluation import StreamEvaluation
from .recipes import Figures


def result_table(result: Mapping[str, Any], figures: Figures) -> Table:
    """The results of a run."""
    return run_table(
        result, lambda title: evaluation_table(f"{title}: accuracy in %", read_evaluation(result["test"]), figures)
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


def seeds_table(title: str, results: Sequence[Mapping[str, Any]]) -> Table:
    """Several runs of a recipe: the total of each segment for each seed, and the mean over seeds with its interval.

    Args:
        title: of the table.
        results: the contents of `result.json` of tested runs of the same sources.
    """
    tested = [(result["seed"], read_evaluation(result["test"])) for result in results]
    table = Table(title=title)
    table.add_column("order")
    table.add_column("source")
    for seed, _ in tested:
        table.add_column(f"seed {seed}", justify="right")
    table.add_column("mean ± 95%", justify="right")
    for place, order in enumerate(tested[0][1].orders):
        for index, segment in enumerate(order.segments):
            totals = [found.orders[place].segments[index].total.mean for _, found in tested]
            first = ", ".join(order.sources) if index == 0 else ""
            cells = [_percent(total) for total in totals]
            table.add_row(first, segment.source, *cells, over_seeds(totals).percent())
    return table


def over_seeds(values: Sequence[float]) -> Measured:
    """Mean over runs that differ in their seed, with its 95% interval by Student's t; none for a single run."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Measured(mean, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return Measured(mean, t_95(len(values) - 1) * deviation / math.sqrt(len(values)))


def read_evaluation(test: Mapping[str, Any]) -> StreamEvaluation:
    """Make an evaluation from what stands under "test" in `result.json`.

    Raises:
        InputError: if it is something else.
    """
    return read_part(StreamEvaluation, test, "test")


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
