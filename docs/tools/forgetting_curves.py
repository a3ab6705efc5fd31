"""Matrices that grow and matrices that forget, drawn from what two benchmarks wrote."""

import json
import math
from pathlib import Path

from drawing import Drawing, number

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
NORMS = (
    ("the paper's rule", "beta", ""),
    ("keys of unit length", "q", "5 4"),
    ("two forget gates, keys of unit length", "k", "5 4"),
    ("two forget gates, keys of unit length, clipped", "y", ""),
)
"""Rules of docs/benchmarks/unbounded-growth.json, their colours and dashes."""
LABELS = {
    "two forget gates, keys of unit length": "2 gates, unit length",
    "two forget gates, keys of unit length, clipped": "2 gates, unit length, clipped",
}

LIVES = (
    ("srwm-gated", "gated SRWM", "y", ""),
    ("gated-deltanet", "gated DeltaNet", "k", ""),
    ("deltanet", "DeltaNet", "q", "5 4"),
    ("srwm", "the paper's SRWM", "beta", ""),
)
"""Memories of docs/benchmarks/unbounded-streams.json, what they are called, their colours and dashes."""


def draw_norms() -> str:
    """Draw the norm of the change of every seed over the steps of its life, both axes in powers of ten."""
    content = json.loads((BENCHMARKS / "unbounded-growth.json").read_text(encoding="utf-8"))
    d = Drawing(760, 350)
    left, right, top, bottom = 60, 520, 40, 292
    low, high = 0, 9

    def place(step: float, norm: float) -> tuple[float, float]:
        x = left + (right - left) * (math.log10(step) - 1) / 4
        return x, bottom - (bottom - top) * (math.log10(max(norm, 1)) - low) / (high - low)

    d.text(
        left, 20, "How far the matrix has moved from where it began, |W - W₀|", size=14, at="start", font_weight="600"
    )
    for power in range(low, high + 1, 3):
        y = place(10, 10.0**power)[1]
        d.path(f"M{left} {number(y)}H{right}", line="line", width=1)
        d.text(
            left - 8,
            y + 4,
            f"{10**power:,}" if power < 6 else f"10{'⁶' if power == 6 else '⁹'}",
            size=12,
            colour="quiet",
            at="end",
        )
    for power in range(1, 6):
        d.text(place(10.0**power, 1)[0], bottom + 20, f"{10**power:,}", size=12, colour="quiet")
    d.text(
        (left + right) / 2,
        bottom + 42,
        "steps of one life, random inputs, no training; six seeds of each",
        size=12,
        colour="quiet",
    )
    for i, (rule, colour, dashes) in enumerate(NORMS):
        for row in content["rows"][rule]:
            points = [place(*point) for point in zip(content["steps"], row, strict=True)]
            line = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
            d.path(line, line=colour, width=1.6, stroke_dasharray=dashes)
        y = top + 22 + 24 * i
        d.path(f"M{right + 18} {y - 4}h22", line=colour, width=2.2, stroke_dasharray=dashes)
        d.text(right + 48, y, LABELS.get(rule, rule), size=12.5, at="start")
    return d.svg()


def draw_lives() -> str:
    """Draw the accuracy of each memory over one stream of 20,000 steps."""
    rows = json.loads((BENCHMARKS / "unbounded-streams.json").read_text(encoding="utf-8"))["rows"]
    d = Drawing(760, 330)
    left, right, top, bottom = 60, 560, 40, 272

    def place(window: float, percent: float) -> tuple[float, float]:
        return left + (right - left) * window / 10, bottom - (bottom - top) * (percent - 20) / 80

    d.text(left, 20, "Accuracy over one stream of 20,000 steps, in percent", size=14, at="start", font_weight="600")
    for percent in range(20, 101, 20):
        y = place(0, percent)[1]
        d.path(f"M{left} {number(y)}H{right}", line="line", width=1)
        d.text(left - 8, y + 4, str(percent), size=12, colour="quiet", at="end")
    for window in range(0, 11, 2):
        d.text(place(window, 20)[0], bottom + 20, f"{2000 * window:,}", size=12, colour="quiet")
    d.text((left + right) / 2, bottom + 42, "steps; the classes change every 50; chance: 20", size=12, colour="quiet")
    for i, (memory, words, colour, dashes) in enumerate(LIVES):
        for row in rows:
            if row["memory"] == memory:
                points = [place(window + 0.5, each) for window, each in enumerate(row["accuracy"])]
                line = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
                d.path(line, line=colour, width=2, stroke_dasharray=dashes)
        y = top + 22 + 24 * i
        d.path(f"M{right + 18} {y - 4}h22", line=colour, width=2.2, stroke_dasharray=dashes)
        d.text(right + 48, y, words, size=12.5, at="start")
    return d.svg()
