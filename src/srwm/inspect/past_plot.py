"""Which past images an answer rests on, as a picture."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from srwm.errors import InputError
from srwm.runs.pictures import FAINT, new_figure, write

from ._figure import INK, headline, layer_title
from .attribution import attribute
from .inspected import Inspected, InspectedAnswer
from .record import MatrixRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RIGHT, _WRONG = "#2e7d32", "#b3261e"
_FEW_COLUMNS, _MOST_COLUMNS = 12, 40
"""With few columns, layers stand side by side; with more than the most, they have no images."""
_MOST_NUMBERS = 200
"""With more cells than this, the numbers in them would not be read."""


def plot_past(inspected: Inspected, out: Path) -> None:
    """Draw what each past step adds to the model's answers, one panel for each layer.

    A cell says by how much what was written at that step raises (red) or lowers (blue) the margin of the answer: the
    score of the class it gave, less the mean of the others. What a step adds to a layer's output is exact; how the
    output changes the margin is taken to first order.

    Args:
        inspected: a model at work; of several episodes the first one is drawn.
        out: the picture; its ending says of what kind.

    Raises:
        InputError: if there are no answers, the matrices were not kept, or the picture cannot be drawn.
    """
    answers = _of_one_episode(inspected)
    if not answers:
        raise InputError("no answer was recorded, so there is nothing that one could rest on; record every step")
    records = [record for record in inspected.inspection if record.kind != "fixed"]
    if not records:
        raise InputError("no recorded layer changes its weights; there is nothing to draw")
    columns = max(answer.place for answer in answers)
    terms = [_terms(inspected, record, answers) for record in records]
    # One scale for all layers, so that one that hardly matters looks like it.
    limit = max(1e-12, *(float(each[:, 2 : 2 + columns].abs().max()) for each in terms)) if columns else 1.0
    cell = 0.62 if columns <= _FEW_COLUMNS else 0.34
    across = len(records) if columns <= _FEW_COLUMNS else 1
    size = (cell * (min(columns, _MOST_COLUMNS) + 4.4), cell * (len(answers) + 1.75) + 0.45)
    figure, grid = new_figure(-(-len(records) // across), across, size)
    panels = [panel for row in grid for panel in row]
    for panel, record, each in zip(panels, records, terms, strict=True):
        _Panel(panel, inspected, answers, each, columns, limit).draw()
        panel.set_title(layer_title(inspected.inspection, record), fontsize="medium", color=INK)
    words = "What was written at each past step adds to the answer (red) or takes from it (blue)"
    headline(figure, f"{words}; darkest: {limit:.2g}")
    write(figure, out)


def _of_one_episode(inspected: Inspected) -> list[InspectedAnswer]:
    """The answers that have the same past as the first, up to the answer itself."""
    if not inspected.answers or inspected.images is None:
        return []
    first = inspected.answers[0]
    past = inspected.images[first.row, : first.place]
    return [
        answer
        for answer in inspected.answers
        if answer.row == first.row or torch.equal(inspected.images[answer.row, : first.place], past)
    ]


def _terms(inspected: Inspected, record: MatrixRecord, answers: Sequence[InspectedAnswer]) -> Tensor:
    """What each answer's margin gets from where: initial, carried, then each recorded step [n, t + 2]."""
    places = {answer: index for index, answer in enumerate(inspected.answers)}
    return torch.cat(
        [
            attribute(record, row=answer.row, at=[answer.place]).toward(
                inspected.gradients[record.name][places[answer]][None]
            )
            for answer in answers
        ]
    )


class _Panel:
    """The panel of one layer: cells of side 1, the past above them, the answers to their left."""

    def __init__(
        self,
        panel: "Axes",
        inspected: Inspected,
        answers: Sequence[InspectedAnswer],
        terms: Tensor,
        columns: int,
        limit: float,
    ) -> None:
        self._panel, self._inspected, self._answers, self._limit = panel, inspected, answers, limit
        self._terms, self._columns = terms, columns
        assert inspected.images is not None
        assert inspected.words is not None
        self._images, self._words = inspected.images, inspected.words
        # The columns of a long past are narrower, and have no room for images.
        self._width = min(1.0, _MOST_COLUMNS / columns) if columns else 1.0
        self._right = columns * self._width

    def draw(self) -> None:
        """Draw it all."""
        panel, number = self._panel, len(self._answers)
        past = self._terms[:, 2 : 2 + self._columns].clone()
        for row, answer in enumerate(self._answers):
            past[row, answer.place :] = float("nan")
        if self._columns:
            scale: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -self._limit, "vmax": self._limit}
            panel.imshow(past.numpy(), **scale, extent=(0, self._right, number, 0), interpolation="nearest", zorder=1)
        self._draw_past()
        for row, answer in enumerate(self._answers):
            _thumbnail(panel, self._images[answer.row, answer.place], -1.15, float(row))
            colour = _RIGHT if answer.given == answer.wanted else _WRONG
            self._write(-1.3, row + 0.5, _verdict(self._inspected, answer), colour, ha="right", fontsize="small")
        if past.numel() <= _MOST_NUMBERS:
            self._draw_numbers(past)
        panel.set_xlim(-3.0, self._right + 1.4)
        panel.set_ylim(number + 0.1, -1.65)
        panel.set_aspect("equal")
        panel.set_axis_off()

    def _draw_past(self) -> None:
        """Put above each column what the model saw and was told, or numbers where there are too many."""
        row = self._answers[0].row
        if self._width == 1:
            for column in range(self._columns):
                _thumbnail(self._panel, self._images[row, column], float(column), -1.05)
                self._write(column + 0.5, -1.25, self._words[row][column], INK, va="bottom", fontsize="small")
            self._write(-0.2, -1.25, self._inspected.told, FAINT, ha="right", va="bottom")
            return
        steps = self._inspected.inspection[0].step.tolist()
        for column in range(9, self._columns, 10):
            self._write((column + 0.5) * self._width, -0.2, str(steps[column]), FAINT, va="bottom")
        self._write(-0.2, -0.2, "step", FAINT, ha="right", va="bottom")

    def _draw_numbers(self, past: Tensor) -> None:
        """Put the numbers into the cells, and behind each row what is not in it."""
        digits = min(4, max(1, 1 - math.floor(math.log10(self._limit))))
        elsewhere = self._terms.sum(dim=1) - past.nansum(dim=1)
        for row, values in enumerate(past.tolist()):
            for column, value in enumerate(values):
                if not math.isnan(value):
                    colour = "white" if abs(value) > 0.6 * self._limit else INK
                    self._write(column + 0.5, row + 0.5, _signed(value, digits), colour)
            self._write(self._right + 0.7, row + 0.5, _signed(float(elsewhere[row]), digits), FAINT)
        # The initial matrix, a state from before, and what fast weights get from the question itself.
        self._write(self._right + 0.7, -0.15, "from\nelsewhere", FAINT, va="bottom")

    def _write(self, x: float, y: float, text: str, colour: str, **style: Any) -> None:
        self._panel.text(x, y, text, color=colour, **{"ha": "center", "va": "center", "fontsize": "x-small", **style})


def _verdict(inspected: Inspected, answer: InspectedAnswer) -> str:
    """What the model said, and what would have been right."""
    if answer.given == answer.wanted:
        return inspected.labels[answer.given]
    return f"{inspected.labels[answer.given]}, is {inspected.labels[answer.wanted]}"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}" if abs(value) >= 0.5 * 10**-digits else "0"


def _thumbnail(panel: "Axes", image: Tensor, left: float, top: float) -> None:
    pixels = image.expand(3, -1, -1).permute(1, 2, 0).numpy()
    panel.imshow(pixels, extent=(left + 0.05, left + 0.95, top + 0.95, top + 0.05), interpolation="nearest", zorder=2)
