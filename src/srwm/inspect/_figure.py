"""What the pictures of this package have in common: colours, names, and their axes."""

import textwrap
from typing import TYPE_CHECKING

from srwm.runs.pictures import FAINT

from .record import Inspection, MatrixRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "y": "#3b6fb6",
    "q": "#d98032",
    "k": "#4f9d69",
    "v": "#d98032",
    "beta": "#b5485d",
    "forget": "#8a7333",
    "fast": "#6b5b95",
}
"""One colour for each part of a matrix, in every picture."""

SHOWN = {"beta": "β", "fast": "fast weights"}
"""What a part is called in a picture, if not by its name."""

COLUMN_NAMES = {**SHOWN, "forget": "f"}
"""The same above its columns, of which there may be one alone."""

INK = "#222222"


def part_name(part: str) -> str:
    """What a part is called in a picture."""
    return SHOWN.get(part, part)


def gate_names(record: MatrixRecord) -> tuple[str, ...]:
    """The columns that each forget gate of a record serves, in a picture."""
    return ((), ("all columns",), ("y", "all others"))[record.forget_gates]


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
