"""Errors of gradients over the growth of the matrix, drawn from what benchmarks/growth.py wrote."""

import json
import math
from pathlib import Path
from statistics import fmean

from drawing import Drawing, number

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PANELS = {
    "delta_rule, long keys": "Delta rule, long keys, 100 steps",
    "self_referential, growing outputs": "Self-referential matrix, 150 steps",
}
CURVES = (
    ("kernel, every update undone from the end", "growth-before.json", "kernel", "beta", ""),
    ("kernel, now", "growth-after.json", "kernel", "y", ""),
    ("reference in float32", "growth-after.json", "reference", "quiet", "3 4"),
)
"""What a curve is called, its file, which of the errors there, its colour and its dashes."""

Points = list[tuple[float, float]]
"""Growth and error."""


def draw_errors() -> str:
    """Draw one panel for each operator, both axes in powers of ten."""
    d = Drawing(760, 404)
    for i, (case, title) in enumerate(PANELS.items()):
        curves = {name: read_points(file, case, which) for name, file, which, _, _ in CURVES}
        _panel(d, 52 + i * 372, title, curves)
    x = 52
    for name, _, _, colour, dashes in CURVES:
        d.path(f"M{x} 388h26", line=colour, width=2.2, stroke_dasharray=dashes)
        d.text(x + 34, 392, name, size=12.5, at="start")
        x += 70 + 7 * len(name)
    return d.svg()


def read_points(file: str, case: str, which: str) -> Points:
    """Read the errors of one case: the growth is the geometric mean over the seeds."""
    rows = json.loads((BENCHMARKS / file).read_text(encoding="utf-8"))["rows"]
    return [
        (math.exp(fmean(math.log(each) for each in row["grown"])), row[which]) for row in rows if row["case"] == case
    ]


def _panel(d: Drawing, left: float, title: str, curves: dict[str, Points]) -> None:
    width, top, bottom = 316, 62, 312
    powers = -8, 6

    def place(growth: float, error: float) -> tuple[float, float]:
        height = (math.log10(error) - powers[0]) / (powers[1] - powers[0])
        return left + width * math.log10(growth) / 14, bottom - (bottom - top) * height

    d.text(left, 20, title, size=14, at="start", font_weight="600")
    d.text(left, 39, "largest relative error of any gradient", size=12, colour="quiet", at="start")
    for power in range(powers[0], powers[1] + 1, 2):
        y = place(1, 10.0**power)[1]
        d.path(f"M{left} {number(y)}h{width}", line="line", width=1.4 if power == 0 else 1)
        _power(d, left - 8, y + 4, power, at="end")
    for power in range(0, 15, 2):
        _power(d, place(10.0**power, 1)[0], bottom + 20, power)
    d.text(left + width / 2, bottom + 42, "times that the matrix has grown", size=12, colour="quiet")
    d.text(left + 5, place(1, 1)[1] - 5, "as large as the gradient", size=11, colour="quiet", at="start")
    for name, _, _, colour, dashes in CURVES:
        points = [place(*point) for point in curves[name]]
        line = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        d.path(line, line=colour, width=2.2, stroke_dasharray=dashes)


def _power(d: Drawing, x: float, y: float, power: int, at: str = "middle") -> None:
    """Write a power of ten."""
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    d.text(x, y, f"10{raised}" if power else "1", size=12, colour="quiet", at=at)
