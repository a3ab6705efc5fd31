"""The report of a sweep: one row a recipe and setting, then one a run; the same bytes for the same results."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from srwm.runs.atomic import write_atomically

from ._plan import Job, Plan, short_label
from ._results import Outcome, Result

FORMAT = 1
LONGEST_TABLE = 40
"""Rows shown on the terminal; the files hold all."""

WIDE = 120
"""Columns of a terminal that also has room for the ranges."""


@dataclass(frozen=True)
class Spread:
    """Accuracies over seeds."""

    mean: float
    deviation: float | None
    """Standard deviation of the sample; None for a single seed."""
    least: float
    most: float
    n: int


@dataclass(frozen=True)
class SweepRow:
    """One recipe with one setting."""

    recipe: str
    setting: str
    validation: Spread | None
    test: Spread | None
    n: int
    """Seeds that finished."""
    failed: int
    runs: tuple[str, ...]


def rows(plan: Plan, outcomes: Sequence[Outcome]) -> list[SweepRow]:
    """Gather jobs into rows: the recipes in the order of the plan, in each the best setting in validation first."""
    by_name = {outcome.job.name: outcome for outcome in outcomes}
    groups: dict[tuple[str, tuple[str, ...]], list[Job]] = {}
    for job in plan.jobs:
        groups.setdefault((job.recipe, job.overrides), []).append(job)
    found = []
    for (recipe, _), jobs in groups.items():
        ended = [by_name[job.name] for job in jobs if job.name in by_name]
        results = [outcome.result for outcome in ended if outcome.result]
        found.append(
            SweepRow(
                recipe=recipe,
                setting=short_label(jobs[0], plan),
                validation=_spread([result.score for result in results if result.score is not None]),
                test=_spread([result.test for result in results if result.test is not None]),
                n=len(results),
                failed=sum(outcome.status == "failed" for outcome in ended),
                runs=tuple(job.name for job in jobs),
            )
        )
    order = {recipe: index for index, recipe in enumerate(plan.recipes)}
    # The sort is stable: equal settings stay in the order of the grid, those without a result come last.
    return sorted(found, key=lambda row: (order[row.recipe], -row.validation.mean if row.validation else 1.0))


def write_report(plan: Plan, outcomes: Sequence[Outcome], out: Path) -> None:
    """Write report.md and report.json into the sweep's folder."""
    table = rows(plan, outcomes)
    failed = _failures(plan, outcomes)
    results = {outcome.job.name: outcome.result for outcome in outcomes if outcome.result}
    # As in the table: a reader who wants to go on with the best seed finds it under the best setting.
    finished = [(name, results[name]) for row in table for name in row.runs if name in results]
    data = {
        "format": FORMAT,
        "seeds": plan.seeds,
        "fixed": dict(plan.fixed),
        "rows": [asdict(row) for row in table],
        "runs": [
            {"run": name, "step": result.step, "validation": result.score, "test": result.test}
            for name, result in finished
        ],
        "failed": [
            {"run": outcome.job.name, "reason": outcome.reason, "last_lines": outcome.tail} for outcome in failed
        ],
    }
    write_atomically(out / "report.json", (json.dumps(data, indent=1, allow_nan=False) + "\n").encode())
    write_atomically(out / "report.md", _markdown(plan, table, finished, failed).encode(errors="backslashreplace"))


def print_report(console: Console, plan: Plan, outcomes: Sequence[Outcome], out: Path) -> None:
    """Show the report as a table, then what failed."""
    wide = console.width >= WIDE
    table = Table(title=f"{_count(len(plan.seeds), 'seed')}, accuracy in %", title_justify="left")
    for heading in ("recipe", "setting"):
        table.add_column(heading, overflow="fold", min_width=len(heading))
    for heading in ("validation", "test"):
        table.add_column(heading, justify="right", no_wrap=True)
        if wide:
            table.add_column("min to max", justify="right", no_wrap=True, style="dim")
    for heading in ("n", "failed"):
        table.add_column(heading, justify="right", no_wrap=True)
    found = rows(plan, outcomes)
    for row in found[:LONGEST_TABLE]:
        spreads = [cell for spread in (row.validation, row.test) for cell in _cells(spread)[: 1 + wide]]
        failed = Text(str(row.failed), style="bold red" if row.failed else "")
        table.add_row(*map(Text, [row.recipe, row.setting or "-", *spreads]), str(row.n), failed)
    console.print(table)
    if len(found) > LONGEST_TABLE:
        console.print(f"and {len(found) - LONGEST_TABLE} rows more in {out / 'report.md'}", soft_wrap=True)
    for outcome in _failures(plan, outcomes):
        console.print(Text(f"failed: {outcome.job.name}: {outcome.reason}", style="red"), soft_wrap=True)
        for line in outcome.tail:
            console.print(Text(f"    {line}"), soft_wrap=True)


def _failures(plan: Plan, outcomes: Sequence[Outcome]) -> list[Outcome]:
    by_name = {outcome.job.name: outcome for outcome in outcomes if outcome.status == "failed"}
    return [by_name[job.name] for job in plan.jobs if job.name in by_name]


def _markdown(
    plan: Plan, table: Sequence[SweepRow], finished: Sequence[tuple[str, Result]], failed: Sequence[Outcome]
) -> str:
    lines = ["# Sweep", ""]
    lines += [f"Seeds: {', '.join(map(str, plan.seeds))}.  "]
    if plan.fixed:
        lines += [f"Set for all: {', '.join(f'`{key}={value}`' for key, value in plan.fixed)}.  "]
    lines += [
        "Accuracy in %: mean over the seeds that finished ± standard deviation of the sample. "
        "Within a recipe, the best setting in validation comes first.",
        "",
        "| recipe | setting | validation | min to max | test | min to max | n | failed |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in table:
        spreads = [*_cells(row.validation), *_cells(row.test)]
        lines.append(_line([row.recipe, row.setting or "-", *spreads, str(row.n), str(row.failed)]))
    if finished:
        lines += [
            "",
            "## Every run that finished",
            "",
            "| run | steps | validation | test |",
            "| --- | ---: | ---: | ---: |",
        ]
    for name, result in finished:
        lines.append(_line([name, f"{result.step:,}", _percent(result.score), _percent(result.test)]))
    if failed:
        lines += ["", "## Failed", ""]
    for outcome in failed:
        lines += [f"`{outcome.job.name}`: {outcome.reason}", ""]
        # Indented, not fenced: a log may hold a fence of its own.
        lines += [*(f"    {line}" for line in outcome.tail), ""] if outcome.tail else []
    return "\n".join(lines).rstrip("\n") + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _percent(accuracy: float | None) -> str:
    return "-" if accuracy is None else f"{100 * accuracy:.2f}"


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), deviation, min(values), max(values), len(values))


def _cells(spread: Spread | None) -> tuple[str, str]:
    if spread is None:
        return "-", "-"
    deviation = "" if spread.deviation is None else f" ± {100 * spread.deviation:.2f}"
    return f"{100 * spread.mean:.2f}{deviation}", f"{100 * spread.least:.2f} to {100 * spread.most:.2f}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
