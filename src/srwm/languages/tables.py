"""Results of languages as tables for a terminal, ours beside the paper's."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from srwm.runs.generic_results import run_table
from srwm.runs.results import read_part

from .evaluation import LanguagesEvaluation
from .recipes import Figures


def result_table(result: Mapping[str, Any], figures: Figures) -> Table:
    """What a run came to.

    Args:
        result: the content of `result.json`.
        figures: what the paper measured; empty if it did not.
    """
    has_score = result["score"] is not None
    return run_table(
        result,
        lambda title: evaluation_table(title, read_part(LanguagesEvaluation, result["test"]), figures),
        validated=has_score,
    )


def evaluation_table(title: str, tested: LanguagesEvaluation, figures: Figures) -> Table:
    """Percent of right sequences and positions by length, with the paper's beside ours where there is one."""
    table = Table(title=escape(title))
    table.add_column("length", justify="right")
    table.add_column("sequences", justify="right")
    table.add_column("right at every position", justify="right")
    if figures:
        table.add_column("paper", justify="right")
    table.add_column("right positions", justify="right")
    for each in tested.by_length:
        paper = [f"{figures[each.lengths]:.1f}%" if each.lengths in figures else ""] if figures else []
        length = f"{each.shortest:,}" if each.shortest == each.longest else f"{each.shortest:,} to {each.longest:,}"
        table.add_row(length, f"{each.sequences:,}", f"{each.whole:.1%}", *paper, f"{each.positions:.1%}")
    return table
