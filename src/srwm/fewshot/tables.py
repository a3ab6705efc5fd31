"""Results as tables for a terminal, ours beside the paper's."""

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from srwm.runs.results import read_part

from .evaluation import FewShotEvaluation


def result_table(result: Mapping[str, Any], paper: float | None) -> Table:
    """The results of a run, beside the paper's figure in percent, if there is one."""
    table = Table(title=f"{result['recipe']}, seed {result['seed']}")
    table.add_column("measure")
    table.add_column("value", justify="right")
    test = result["test"]
    if test is not None:
        tested = read_part(FewShotEvaluation, test)
        table.add_row("test accuracy, classes never seen", percent_with_interval(tested))
    table.add_row("the paper's test accuracy", "-" if paper is None else f"{paper:.1f}%")
    if result["score"] is not None:
        table.add_row("best validation accuracy", f"{result['score']:.1%} at step {result['score_step']:,}")
    table.add_row("steps", f"{result['step']:,}")
    table.add_row("parameters", f"{result['parameters']:,}")
    table.add_row("seconds", f"{result['seconds']:,.0f}")
    return table


def evaluation_table(title: str, tested: FewShotEvaluation, paper: float | None) -> Table:
    """What a test measured, beside the paper's figure in percent, if there is one."""
    table = Table(title=escape(title))
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_row("accuracy, 95% interval over sets", percent_with_interval(tested))
    if tested.interval_episodes is not None:
        table.add_row("95% interval over episodes", f"± {tested.interval_episodes:.2%}")
    table.add_row("each set", ", ".join(f"{mean:.2%}" for mean in tested.sets))
    table.add_row("episodes", f"{tested.episodes:,}")
    table.add_row("the paper's", "-" if paper is None else f"{paper:.1f}%")
    return table


def percent_with_interval(tested: FewShotEvaluation) -> str:
    """Accuracy with its interval over sets, or over episodes where there is one set, if there is one."""
    interval = tested.interval_episodes if tested.interval_sets is None else tested.interval_sets
    return f"{tested.accuracy:.2%}" + ("" if interval is None else f" ± {interval:.2%}")
