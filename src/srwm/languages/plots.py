"""Pictures of runs on languages: up to which length each memory is right."""

import itertools
from collections.abc import Mapping
from pathlib import Path

from srwm.errors import InputError
from srwm.runs.pictures import calm, legend, new_figure, write
from srwm.runs.run_folder import RunFolder

from .evaluation import LanguagesEvaluation
from .loading import KIND
from .tables import read_evaluation

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
    tested = {name: _tested(path) for name, path in runs.items()}
    figure, ((whole, along),) = new_figure(1, 2, _PANEL, sharey=True)
    for (name, found), style in zip(tested.items(), itertools.cycle(_STYLES), strict=False):
        lengths = [each.longest for each in found.by_length]
        shares = [100 * each.whole for each in found.by_length]
        whole.plot(lengths, shares, style, label=name, marker="o", markersize=3)
        positions = [each.last for each in found.by_position]
        along.plot(positions, [100 * each.accuracy for each in found.by_position], style, label=name)
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


def _tested(path: Path) -> LanguagesEvaluation:
    result = RunFolder.open(path, kind=KIND).read_result()
    if result is None or result.get("test") is None:
        raise InputError(f"{path} has not been tested yet: finish it with `srwm train --resume`")
    return read_evaluation(result["test"])
