"""Results as tables for a terminal, ours beside the paper's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from srwm.errors import InputError
from srwm.runs.results import read_part

from .procgen.paper import Score

PaperReturns = Mapping[str, Mapping[str, Score]]
"""The paper's returns by part of the levels and game."""


@dataclass(frozen=True)
class _Split:
    """What stands in `result.json` of one range of levels; see `SplitResult`."""

    levels: tuple[int, int]
    means: dict[str, float]
    score: float
    returns: dict[str, tuple[float, ...]] = field(default_factory=dict)
    lengths: dict[str, float] = field(default_factory=dict)


def read_splits(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give what a test measured on each range of levels, none if there was no test.

    Raises:
        InputError: if the result holds something else, or the games differ.
    """
    tested: Mapping[str, Any] = result.get("test") or {}
    games: set[str] | None = None
    for name, split in tested.items():
        found = set(read_part(_Split, split, f"test.{name}").means)
        games = found if games is None else games
        if not found or found != games:
            raise InputError(f"test.{name}.means has other games than the rest: {', '.join(sorted(found)) or 'none'}")
    return tested


def result_table(result: Mapping[str, Any], paper: PaperReturns) -> Table:
    """The results of a run: returns by game on the levels it trained on and on those it never saw."""
    title = f"{result['recipe']}, seed {result['seed']}: {result['frames']:,} frames"
    return returns_table(title, read_splits(result), paper)


def returns_table(title: str, tested: Mapping[str, Any], paper: PaperReturns) -> Table:
    """Mean returns by game, and the aggregated score where there are several games; over splits mean and deviation.

    Args:
        title: of the table.
        tested: results of splits as JSON values, by name; those whose names begin with "test" are taken together.
        paper: the paper's returns.
    """
    table = Table(title=escape(title))
    table.add_column("game")
    groups = grouped(tested)
    for group in groups:
        table.add_column(group, justify="right")
        table.add_column(f"the paper's {group}", justify="right")
    for game in _rows(groups):
        cells = []
        for group, results in groups.items():
            cells += [_with_deviation([value_of(each, game) for each in results]), _paper_return(paper, group, game)]
        table.add_row("score over all games" if game == "score" else game, *cells)
    return table


def grouped(tested: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The results of splits by the part of the levels they belong to: "train", "validation" or "test"."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for name, result in tested.items():
        groups.setdefault(name.partition("-")[0], []).append(result)
    return groups


def value_of(result: Mapping[str, Any], game: str) -> float:
    """The mean return of a game on a split, or "score", the aggregated score."""
    return float(result["score"] if game == "score" else result["means"][game])


def _rows(groups: Mapping[str, list[Mapping[str, Any]]]) -> list[str]:
    games = list(next(iter(groups.values()))[0]["means"]) if groups else []
    return [*games, "score"] if len(games) > 1 else games


def _with_deviation(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{np.mean(values):.1f} ({np.std(values, ddof=1):.1f})"


def _paper_return(paper: PaperReturns, group: str, game: str) -> str:
    score = paper.get(group, {}).get(game)
    return "-" if score is None else f"{score.mean:.1f} ({score.deviation:.1f})"
