"""Pictures of runs on languages: up to which length each memory is right."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srwm.errors import InputError
from srwm.runs.pictures import calm, legend, new_figure, write
from srwm.runs.results import read_part
from srwm.runs.run_folder import RunFolder

from .evaluation import LanguagesEvaluation
from .loading import KIND

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL = (5.2, 3.4)
_STYLES = ("-", "--", ":", "-.")
"""Each run has the next: lines that lie on each other, at 100%, are all seen."""


def plot_lengths(runs: Mapping[str, Path], out: Path) -> None:
    """Draw what is right over the length: whole sequences, and positions along the longest; one line for each run.

    Args:
        runs: folders of tested runs, by the name that the legend shows, such as "SRWM".
        out: the picture; its ending says of what kind (.png, .svg, .pdf).

    Raises:
        InputError: if a folder holds no tested run on a language, or matplotlib is not there.
    """
    plot_evaluations({name: [_tested(path)] for name, path in runs.items()}, out)


def plot_evaluations(tested: Mapping[str, Sequence[LanguagesEvaluation]], out: Path) -> None:
    """Draw the same of tests, one line for each name: the mean of its tests, and in a light band from least to most.

    Args:
        tested: tests at the same lengths, of one seed each, by the name that the legend shows.
        out: the picture; its ending says of what kind.

    Raises:
        InputError: if the picture cannot be drawn.
    """
    figure, ((whole, along),) = new_figure(1, 2, _PANEL, sharey=True)
    for (name, found), style in zip(tested.items(), itertools.cycle(_STYLES), strict=False):
        lengths = [each.longest for each in found[0].by_length]
        shares = [[100 * each.whole for each in one.by_length] for one in found]
        _line(whole, lengths, shares, style, name, marker="o", markersize=3)
        positions = [each.last for each in found[0].by_position]
        _line(along, positions, [[100 * each.accuracy for each in one.by_position] for one in found], style, name)
    whole.set_ylabel("%")
    whole.set_title("sequences right at every position", fontsize="medium")
    whole.set_xlabel("length of the sequence")
    along.set_title("right positions of the longest sequences", fontsize="medium")
    along.set_xlabel("position")
    for panel in (whole, along):
        panel.set_xscale("log")
        panel.set_ylim(-3, 103)
        calm(panel)
    legend(figure, (whole, along))
    write(figure, out)


def _line(panel: "Axes", xs: list[int], rows: list[list[float]], style: str, name: str, **options: Any) -> None:
    """The mean of some rows, and from their least to their most."""
    columns = list(zip(*rows, strict=True))
    (line,) = panel.plot(xs, [sum(column) / len(column) for column in columns], style, label=name, **options)
    if len(rows) > 1:
        low, high = ([edge(column) for column in columns] for edge in (min, max))
        panel.fill_between(xs, low, high, color=line.get_color(), alpha=0.15, linewidth=0)


def _tested(path: Path) -> LanguagesEvaluation:
    result = RunFolder.open(path, kind=KIND).read_result()
    if result is None or result.get("test") is None:
        raise InputError(f"{path} has not been tested yet: finish it with `srwm train --resume`")
    return read_part(LanguagesEvaluation, result["test"])
