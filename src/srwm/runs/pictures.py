"""What the pictures of all packages have in common: paper, axes, a legend, and how they are written."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srwm.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAINT = "#777777"


def new_figure(
    rows: int, columns: int, size: tuple[float, float], **options: Any
) -> tuple["Figure", list[list["Axes"]]]:
    """Make a figure of panels, without touching any global state of matplotlib.

    Raises:
        InputError: if matplotlib is not there.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("pictures need matplotlib: install it with `pip install srwm[plot]`") from None
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    axes: Any = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, [list(row) for row in axes]


def calm(panel: "Axes") -> None:
    """Take away what does not speak."""
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.tick_params(labelsize="small", colors=FAINT, length=2)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color("#bbbbbb")


def legend(figure: "Figure", panels: Sequence["Axes"]) -> None:
    """One legend above all panels, each name once, in as many rows as it takes to be as narrow as the picture."""
    entries: dict[str, Any] = {}
    for panel in panels:
        handles, names = panel.get_legend_handles_labels()
        entries.update(zip(names, handles, strict=True))
    for columns in range(len(entries), 0, -1):
        drawn = figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside upper center",
            ncols=columns,
            fontsize="small",
            frameon=False,
        )
        if columns == 1 or drawn.get_window_extent().width <= figure.bbox.width:
            break
        drawn.remove()


def write(figure: "Figure", out: Path) -> None:
    """Write a picture; its ending says of what kind.

    Raises:
        InputError: if it cannot be written there, or not as such a kind.
    """
    try:
        figure.savefig(out, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"{out} cannot be drawn: {error}") from error
