"""The results of any experiment: the numbers of its test as figures, curves and tables, without a word of its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from .charts import Chart, Line, Measure
from .recipes import Recipe

__all__ = ["generic_charts", "generic_measures", "generic_table", "run_table"]


def generic_measures(result: Mapping[str, Any], recipe: Recipe | None) -> list[Measure]:
    """The numbers of a test, and the best score of the validations.

    Args:
        result: the content of `result.json`. Under "test" stand numbers by name; in objects, the names are joined. A
            number that is called "accuracy", or ends in "/accuracy", is a share.
        recipe: with the paper's figure for "accuracy", if there is one.
    """
    found = []
    for name, value in _entries(result.get("test") or {}):
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        paper = recipe.paper if recipe is not None and name == "accuracy" else None
        percent = name.rpartition("/")[2] == "accuracy"
        found.append(Measure(f"test {name}", value, paper=None if paper is None else paper / 100, percent=percent))
    if result.get("score") is not None:
        found.append(Measure("best validation accuracy", result["score"], percent=True))
    return found


def generic_charts(result: Mapping[str, Any]) -> list[Chart]:
    """The lists of numbers of a test, each as a curve over its places."""
    drawn = []
    for name, value in _entries(result.get("test") or {}):
        is_curve = isinstance(value, list) and len(value) > 1 and all(isinstance(each, int | float) for each in value)
        if is_curve:
            line = Line(name, [float(place) for place in range(1, len(value) + 1)], value)
            percent = name.rpartition("/")[2] == "accuracy"
            drawn.append(Chart(f"Test {name}", "place", (line,), percent=percent))
    return drawn


def generic_table(title: str, measures: Sequence[Measure], about: Mapping[str, str]) -> Table:
    """Figures one below the other, the paper's beside ours where there is one."""
    table = Table("measure", title=escape(title))
    table.add_column("value", justify="right")
    has_paper = any(each.paper is not None for each in measures)
    if has_paper:
        table.add_column("paper", justify="right")
    for each in measures:
        paper = "" if each.paper is None else each.shown(each.paper)
        table.add_row(each.name, str(each), *([paper] if has_paper else []))
    for name, value in about.items():
        table.add_row(name, value)
    return table


def run_table(result: Mapping[str, Any], tested: Callable[[str], Table], *, validated: bool = True) -> Table:
    """The table of the test of a run, with what else is known of the run below; without a test, that alone.

    Args:
        result: the content of `result.json`.
        tested: makes the table of the test, from its title.
        validated: whether such runs have validations.
    """
    title = f"{result['recipe']}, seed {result['seed']}"
    score = "-" if result["score"] is None else f"{result['score']:.1%} at step {result['score_step']:,}"
    about = {
        **({"best validation accuracy": score} if validated else {}),
        "steps": f"{result['step']:,}",
        "parameters": f"{result['parameters']:,}",
        "seconds": f"{result['seconds']:,.0f}",
    }
    if result["test"] is None:
        return generic_table(title, [], about)
    table = tested(title)
    table.caption = "; ".join(f"{name} {value}" for name, value in about.items())
    return table


def _entries(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Everything in nested objects, under joined names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _entries(value, f"{prefix}{name}/")
        else:
            yield prefix + name, value
