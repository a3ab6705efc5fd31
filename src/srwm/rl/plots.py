"""Learning curves of agents as a picture."""

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from srwm.errors import InputError
from srwm.runs.metrics import read_metrics
from srwm.runs.pictures import calm, legend, new_figure, write
from srwm.runs.run_folder import RunFolder

from .loading import KIND

_RETURN = "train/return/"
_PANEL, _MOST_COLUMNS = (4.4, 3.0), 3

Curve = tuple[list[float], list[float]]
"""Frames and mean returns."""


def plot_returns(runs: Mapping[str, Path], out: Path, *, span: float = 0.0, until: float = math.inf) -> None:
    """Draw the return in training over the frames, a picture for each game, a line for each run.

    Args:
        runs: folders of runs, finished or not, by the name that the legend shows, such as "SRWM".
        out: the picture; its ending says of what kind (.png, .svg, .pdf).
        span: frames that are averaged to one point, at least; so runs that log at other intervals are drawn alike.
        until: frames where the picture ends.

    Raises:
        InputError: if there are no runs, a folder holds none of an agent in which an episode has ended, or matplotlib
            is not there.
    """
    if not runs:
        raise InputError("there are no runs to draw")
    curves = {name: _curves(path, span, until) for name, path in runs.items()}
    games = list(dict.fromkeys(game for found in curves.values() for game in found))
    columns = 2 if len(games) == 4 else min(len(games), _MOST_COLUMNS)
    figure, rows = new_figure(-(-len(games) // columns), columns, _PANEL)
    panels = [panel for row in rows for panel in row]
    for panel in panels[len(games) :]:
        panel.remove()
    for panel, game in zip(panels, games, strict=False):
        for name, found in curves.items():
            frames, returns = found.get(game, ([], []))
            panel.plot([each / 1e6 for each in frames], returns, label=name, linewidth=1.2)
        panel.set_title(game, fontsize="medium")
        panel.set_xlabel("million frames")
        calm(panel)
    for row in rows:
        row[0].set_ylabel("mean return in training")
    legend(figure, panels[: len(games)])
    write(figure, out)


def _curves(path: Path, span: float, until: float) -> dict[str, Curve]:
    """Frames and mean returns of a run, by game."""
    folder = RunFolder.open(path, kind=KIND)
    records = read_metrics(folder.metrics_path) if folder.metrics_path.exists() else []
    records = [record for record in records if record.get("frames", math.inf) <= until]
    games = {key.removeprefix(_RETURN) for record in records for key in record if key.startswith(_RETURN)}
    if not games:
        raise InputError(f"{folder.metrics_path} holds no returns: no episode has ended yet")
    return {game: _curve(records, _RETURN + game, span) for game in sorted(games)}


def _curve(records: list[dict[str, Any]], key: str, span: float) -> Curve:
    points: list[list[dict[str, Any]]] = []
    waiting: list[dict[str, Any]] = []
    before = 0.0
    for record in records:
        if key not in record:
            continue
        waiting.append(record)
        if record["frames"] - before >= span:
            points.append(waiting)
            before, waiting = record["frames"], []
    # The last lines that fill no point join the one before: a point of few episodes would jump.
    if points:
        points[-1] += waiting
    elif waiting:
        points = [waiting]
    return [point[-1]["frames"] for point in points], [mean(record[key] for record in point) for point in points]
