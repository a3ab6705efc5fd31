"""Charts as SVG: small, sharp, the same bytes every time, in the colours of the page they stand on."""

import html
import math
from collections.abc import Sequence

from srwm.runs.charts import LARGEST, Chart, Line

WIDTH, HEIGHT = 480, 250
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 12, 42
MOST_POINTS = 400
"""Points of a line; more are averaged."""
NEAR_THE_TOP = 75.0
"""Shares that are never below are drawn on an axis of their own, or they would be a flat line."""
COLOURS = 8
"""The page has as many colours for lines; more lines begin again."""


def chart_svg(chart: Chart) -> str:
    """Draw a chart, with its legend below it.

    Points that are not finite, or larger than any figure that means something, are left out; a chart without points
    says so.
    """
    scale = 100.0 if chart.percent else 1.0
    lines = [_thinned(line, scale) for line in chart.lines]
    xs = [x for line in lines for x in line.xs]
    ys = [y for line in lines for y in line.ys]
    title = html.escape(chart.title)
    if not xs:
        return f'<figure><figcaption>{title}</figcaption><p class="faint">nothing to draw</p></figure>'
    x_range = (min(xs), max(xs)) if len(set(xs)) > 1 else (xs[0] - 1, xs[0] + 1)
    x_ticks = [x for x in ticks(*x_range, 6) if x_range[0] <= x <= x_range[1]]
    if not chart.percent:
        y_ticks = ticks(min(ys), max(ys), 5)
    elif min(ys) < NEAR_THE_TOP:
        y_ticks = [0.0, 25.0, 50.0, 75.0, 100.0]
    else:
        y_ticks = ticks(min(*ys, 99.0), 100.0, 5)
    place = _Place(x_range, (y_ticks[0], y_ticks[-1]))
    unit = "%" if chart.percent else ""
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">']
    for y in y_ticks:
        at = place.y(y)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{number(y)}{unit}</text>')
    parts += [
        f'<text x="{place.x(x)}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{number(x)}</text>' for x in x_ticks
    ]
    middle, label = (LEFT + WIDTH - RIGHT) // 2, html.escape(chart.x_label)
    parts.append(f'<text class="label" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{label}</text>')
    for x, text in chart.marks:
        at = place.x(x)
        parts.append(f'<line class="mark" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text class="label" x="{at + 5:.1f}" y="{HEIGHT - BOTTOM - 6}">{html.escape(text)}</text>')
    for index, line in enumerate(lines):
        points = " ".join(f"{place.x(x)},{place.y(y)}" for x, y in zip(line.xs, line.ys, strict=True))
        parts.append(f'<polyline class="line c{index % COLOURS}" points="{points}"/>')
        if len(line.xs) == 1:
            x, y = place.x(line.xs[0]), place.y(line.ys[0])
            parts.append(f'<circle class="dot c{index % COLOURS}" cx="{x}" cy="{y}" r="3"/>')
    parts.append("</svg>")
    legend = "".join(
        f'<li><span class="key c{index % COLOURS}"></span>{html.escape(line.name)}</li>'
        for index, line in enumerate(lines)
    )
    legend = f'<ul class="legend">{legend}</ul>' if chart.has_legend else ""
    return f"<figure><figcaption>{title}</figcaption>\n{''.join(parts)}\n{legend}</figure>"


class _Place:
    """From the numbers of an axis to places in the picture, with one decimal."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
        (self._x0, x1), (self._y0, y1) = x_range, y_range
        self._x_scale = (WIDTH - LEFT - RIGHT) / ((x1 - self._x0) or 1.0)
        self._y_scale = (HEIGHT - TOP - BOTTOM) / ((y1 - self._y0) or 1.0)

    def x(self, value: float) -> float:
        return round(LEFT + (value - self._x0) * self._x_scale, 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - (value - self._y0) * self._y_scale, 1)


def ticks(least: float, most: float, number_wanted: int) -> list[float]:
    """Round numbers that cover a range, from below it to above it: steps of 1, 2 or 5 times a power of ten."""
    # Figures so small that their steps would be no numbers any more are taken for zero.
    least, most = (0.0 if abs(value) < 1 / LARGEST else value for value in (least, most))
    if most <= least:
        most = least + (abs(least) or 1.0)
    rough = (most - least) / max(number_wanted - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.floor(least / step + 1e-9)
    last = math.ceil(most / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def number(value: float) -> str:
    """A number of an axis, short: 20k, 1.5M, 0.25."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}"


def _thinned(line: Line, scale: float) -> Line:
    """Leave out what is not finite or too large, and average neighbours where there are too many points."""
    points = [(x, scale * y) for x, y in zip(line.xs, line.ys, strict=True) if abs(x) <= LARGEST and abs(y) <= LARGEST]
    size = -(-len(points) // MOST_POINTS) or 1
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    xs = [_mean([x for x, _ in group]) for group in groups]
    return Line(line.name, xs, [_mean([y for _, y in group]) for group in groups])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
