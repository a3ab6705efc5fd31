"""Curves drawn from a table of the results."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from drawing import Drawing, number

RESULTS = Path(__file__).parents[1] / "results"

Curves = dict[str, list[float]]
"""Percent at each step, by the name of the row."""


def draw_curves(steps: Sequence[int], curves: Mapping[str, Sequence[float]], styles: Sequence[tuple[str, str]]) -> str:
    """Draw accuracies over training steps, the name of each beside its end.

    Args:
        steps: columns of the table.
        curves: rows of the table, in percent.
        styles: colour and dashes of each row.
    """
    d = Drawing(760, 330)
    left, right, top, bottom = 60, 470, 24, 282

    def place(step: float, value: float) -> tuple[float, float]:
        return left + (right - left) * step / steps[-1], bottom - (bottom - top) * value / 100

    for value in (0, 20, 40, 60, 80, 100):
        y = place(0, value)[1]
        d.path(
            f"M{left} {number(y)}H{right}",
            line="line",
            width=1 if value != 20 else 1.4,
            stroke_dasharray="5 4" if value == 20 else "",
        )
        d.text(left - 8, y + 4, f"{value}%", size=12, colour="quiet", at="end")
    for step in steps:
        d.text(place(step, 0)[0], bottom + 18, f"{step:,}", size=12, colour="quiet")
    d.text((left + right) / 2, bottom + 38, "training steps", size=12, colour="quiet")
    ends: list[float] = []
    named = sorted(zip(curves.items(), styles, strict=True), key=lambda each: -each[0][1][-1])
    for (name, values), (colour, dashes) in named:
        points = [place(step, value) for step, value in zip(steps, values, strict=True)]
        line = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        d.path(line, line=colour, width=2.2, stroke_dasharray=dashes)
        y = points[-1][1]
        while any(abs(y - other) < 17 for other in ends):
            y += 1
        ends.append(y)
        d.text(right + 10, y + 4, name, size=12, colour=colour if colour != "quiet" else "ink", at="start")
    return d.svg()


def read_table(page: str, heading: str) -> tuple[list[int], Curves]:
    """Read the table of a page whose first cell begins with `heading`: steps in the columns, percent in the rows.

    Raises:
        ValueError: if it is not there any more in this form.
    """
    text = (RESULTS / page).read_text(encoding="utf-8")
    found = re.search(rf"^\| {re.escape(heading)}[^|]*\|(.*)\|\n\|[ -|]*\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"docs/results/{page} has no table that begins with {heading!r}; see docs/tools/pictures.py")
    steps = [int(word.replace(",", "")) for word in re.findall(r"\d[\d,]*", found[1])]
    curves = {}
    for line in found[2].splitlines():
        name, *values = (cell.strip() for cell in line.strip("|").split("|"))
        curves[name] = [float(value.rstrip("%")) for value in values]
    return steps, curves
