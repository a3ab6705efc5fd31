"""What the pictures of this room have in common: paper, colours, names, and how they are written."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srwm.errors import InputError

from .record import Inspection, MatrixRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"y": "#3b6fb6", "q": "#d98032", "k": "#4f9d69", "beta": "#b5485d", "fast": "#6b5b95"}
"""One colour for each part of a matrix, in every picture."""

SHOWN = {"beta": "β", "fast": "fast weights"}
"""What a part is called in a picture, if not by its name."""

INK, FAINT = "#222222", "#777777"


def new_figure(
    rows: int, columns: int, size: tuple[float, float], **options: Any
) -> tuple["Figure", list[list["Axes"]]]:
    """Make a figure of panels, without touching any global state of matplotlib.

    Args:
        rows: of panels.
        columns: of panels.
        size: width and height of a panel in inches.
        options: for `Figure.subplots`.

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


def part_name(part: str) -> str:
    """What a part is called in a picture."""
    return SHOWN.get(part, part)


def layer_title(inspection: Inspection, record: MatrixRecord) -> str:
    """What a layer is called in a picture."""
    layers = list(dict.fromkeys(each.name.partition("/")[0] for each in inspection))
    place = layers.index(record.name.partition("/")[0]) + 1
    # The end of a name says more than its beginning.
    name = record.name if len(record.name) <= 30 else f"...{record.name[-27:]}"
    return f"layer {place} of {len(layers)}: {name}" if len(layers) > 1 else name


def headline(figure: "Figure", text: str) -> None:
    """Put a sentence above all panels, in as many lines as it needs."""
    characters_per_inch = 11
    lines = textwrap.fill(text, max(20, int(characters_per_inch * figure.get_figwidth())))
    figure.suptitle(lines, fontsize="medium", color=INK)


def calm(panel: "Axes") -> None:
    """Take away what does not speak."""
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.tick_params(labelsize="small", colors=FAINT, length=2)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color("#bbbbbb")


def step_axis(panel: "Axes", record: MatrixRecord, label: bool = True) -> None:
    """Number the steps, and draw a line where an episode begins in every row."""
    from matplotlib.ticker import MaxNLocator

    steps = record.step.tolist()
    if steps[0] < steps[-1]:
        panel.set_xlim(steps[0] - 0.02 * (steps[-1] - steps[0]), steps[-1] + 0.02 * (steps[-1] - steps[0]))
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    begins = (record.episode[:, 1:] > record.episode[:, :-1]).all(dim=0).nonzero()[:, 0].tolist()
    for place in begins:
        panel.axvline((steps[place] + steps[place + 1]) / 2, color=FAINT, linewidth=0.8, linestyle=":")
    if label:
        panel.set_xlabel("step", fontsize="small", color=FAINT)


def legend(figure: "Figure", panels: Sequence["Axes"]) -> None:
    """One legend above all panels, each name once."""
    entries: dict[str, Any] = {}
    for panel in panels:
        handles, names = panel.get_legend_handles_labels()
        entries.update(zip(names, handles, strict=True))
    if entries:
        figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside upper center",
            ncols=len(entries),
            fontsize="small",
            frameon=False,
        )


def write(figure: "Figure", out: Path) -> None:
    """Write a picture; its ending says of what kind.

    Raises:
        InputError: if it cannot be written there, or not as such a kind.
    """
    try:
        figure.savefig(out, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"{out} cannot be drawn: {error}") from error
