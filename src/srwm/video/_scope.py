"""Curves on a picture, smooth at the edges: each is a band between two heights in every column of pixels."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float32, UInt8

from ._canvas import Colour


@dataclass(frozen=True)
class Scale:
    """What the lower and the upper edge of a plot stand for."""

    low: float
    high: float

    def rows(self, values: Float[np.ndarray, "*axes"], height: int) -> Float[np.ndarray, "*axes"]:
        """Say at which height from the top, in pixels, values lie; there is room for a line at both edges."""
        share = (values - self.low) / (self.high - self.low)
        return np.asarray(1.5 + (1 - share) * (height - 3))


def scale_from_zero(values: Float[np.ndarray, "*axes"], least: float) -> Scale:
    """Choose a scale with 0 and all values in it, whose ends are 1, 2 or 5 times a power of ten, at least `least`."""
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    return Scale(-_round_up(-low) if low < 0 else 0.0, _round_up(max(high, least)))


def scale_of_rates(low: float, high: float) -> Scale:
    """Choose a part of 0 to 1 that holds some learning rates: 0.1, 0.2, 0.5 or 1 wide."""
    low, high = max(low, 0.0), min(high, 1.0)
    for width in (0.1, 0.2, 0.5):
        begin = math.floor(low / (width / 2) + 1e-6) * width / 2
        begin = min(begin, 1 - width)
        if high <= begin + width + 1e-6:
            return Scale(begin, begin + width)
    return Scale(0.0, 1.0)


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if value <= step * power * (1 + 1e-9))


def fill(
    area: UInt8[np.ndarray, "h w 3"],
    upper: Float[np.ndarray, "w"],
    lower: Float[np.ndarray, "w"],
    colour: Colour,
    opacity: float = 1.0,
) -> None:
    """Paint between two heights in each column.

    Args:
        area: the pixels, changed in place.
        upper: where to begin, in pixels from the top; nothing is painted where it is NaN.
        lower: where to end.
        colour: what to paint.
        opacity: how much of it, 0 to 1.
    """
    if np.isnan(upper).all():
        return
    first = int(np.clip(np.floor(np.nanmin(upper)), 0, len(area)))
    last = int(np.clip(np.ceil(np.nanmax(lower)), first, len(area)))
    rows = np.arange(first, last, dtype=np.float32)[:, None]
    # The part of each pixel that is covered; a comparison with NaN is false.
    covered = np.minimum(lower, rows + 1) - np.maximum(upper, rows)
    touched = np.nonzero(covered > 0)
    alpha = np.minimum(covered[touched], 1)[:, None] * np.float32(opacity)
    part = area[first:last]
    before = part[touched]
    part[touched] = (before + alpha * (np.asarray(colour, np.float32) - before) + 0.5).astype(np.uint8)


def draw_line(
    area: UInt8[np.ndarray, "h w 3"], rows: Float[np.ndarray, "steps"], window: int, colour: Colour, width: float = 1.6
) -> None:
    """Draw a curve whose last value stands at the right edge.

    Args:
        area: the pixels, changed in place.
        rows: height of each step, in pixels from the top, at most `window` of them.
        window: steps from the left edge to the right.
        colour: of the line.
        width: of the line, in pixels.
    """
    ends = _at_columns(rows, window, area.shape[1] + 1)
    above, below = np.fmin(ends[:-1], ends[1:]), np.fmax(ends[:-1], ends[1:])
    fill(area, above - width / 2, below + width / 2, colour)


def draw_band(
    area: UInt8[np.ndarray, "h w 3"],
    upper: Float[np.ndarray, "steps"],
    lower: Float[np.ndarray, "steps"],
    window: int,
    colour: Colour,
    opacity: float,
) -> None:
    """Paint between two curves; the arguments are those of `draw_line`."""
    columns = area.shape[1]
    fill(area, _at_columns(upper, window, columns), _at_columns(lower, window, columns), colour, opacity)


def draw_dashes(
    area: UInt8[np.ndarray, "h w 3"], where: Bool[np.ndarray, "steps"], window: int, colour: Colour
) -> None:
    """Draw a dashed line from top to bottom at some steps; the arguments are those of `draw_line`."""
    for column in _columns_of(where, window, area.shape[1]):
        dashes = area[:, column].reshape(-1, 3)
        dashes[np.arange(len(dashes)) % 6 < 3] = colour


def draw_marks(area: UInt8[np.ndarray, "h w 3"], where: Bool[np.ndarray, "steps"], window: int, colour: Colour) -> None:
    """Draw a mark at the lower edge at some steps; the arguments are those of `draw_line`."""
    for column in _columns_of(where, window, area.shape[1]):
        area[-12:, max(column - 1, 0) : column + 2] = colour


def _columns_of(where: Bool[np.ndarray, "steps"], window: int, columns: int) -> list[int]:
    places = np.flatnonzero(where) + (window - len(where))
    return [round(place * (columns - 1) / (window - 1)) for place in places.tolist()]


def _at_columns(rows: Float[np.ndarray, "steps"], window: int, columns: int) -> Float32[np.ndarray, "columns"]:
    """Heights in each column; NaN to the left of the first step."""
    places = np.arange(len(rows)) + (window - len(rows))
    at = np.linspace(0, window - 1, columns)
    return np.asarray(np.interp(at, places, rows, left=np.nan), np.float32)
