"""The picture of what is still known: accuracy on each task after each later one, as a matrix of cells."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from srwm.runs.pictures import FAINT, new_figure, write

from .measures import TaskMatrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL = 0.52
"""Height and width of a cell in inches."""
_LARGEST_CELLS_WITH_NUMBERS = 12
"""With more tasks than this, the colours must do."""


def plot_matrices(matrices: Mapping[str, TaskMatrix], out: Path) -> None:
    """Draw a matrix for each method, side by side: rows are the tasks learnt so far, columns the tasks asked about.

    All are on as many tasks. The ending of `out` says of what kind the picture is (.png, .svg, .pdf).

    Raises:
        InputError: if it cannot be drawn there, or matplotlib is not there.
    """
    most = max(len(one.tasks) for one in matrices.values())
    side = 1.6 + _CELL * min(most, _LARGEST_CELLS_WITH_NUMBERS)
    figure, (panels,) = new_figure(1, len(matrices), (side + 0.6, side), sharey=True)
    for panel, (title, one) in zip(panels, matrices.items(), strict=True):
        _draw(panel, title, one)
    panels[0].set_ylabel("after task", fontsize="small")
    write(figure, out)


def _draw(panel: "Axes", title: str, one: TaskMatrix) -> None:
    number = len(one.tasks)
    numbers = number <= _LARGEST_CELLS_WITH_NUMBERS
    cells = [[100 * value.mean for value in row] + [float("nan")] * (number - len(row)) for row in one.matrix]
    panel.imshow(cells, vmin=0, vmax=100, cmap="Blues", aspect="equal")
    if numbers:
        for after, row in enumerate(one.matrix):
            for task, value in enumerate(row):
                ink = "white" if value.mean > 0.6 else "black"
                panel.text(task, after, f"{100 * value.mean:.0f}", ha="center", va="center", fontsize=8, color=ink)
    panel.set_title(f"{title}\n{100 * one.accuracy.mean:.1f}% in the end", fontsize="small")
    panel.set_xlabel("accuracy (%) on task", fontsize="small")
    places = range(number) if numbers else range(0, number, 5)
    different = len(set(one.tasks)) > 1
    names = [one.tasks[place] if different and numbers else str(place + 1) for place in places]
    panel.set_xticks(
        list(places), names, rotation=45 if different and numbers else 0, ha="right" if different else "center"
    )
    panel.set_yticks(list(places), [str(place + 1) for place in places])
    panel.tick_params(labelsize="small", colors=FAINT, length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
