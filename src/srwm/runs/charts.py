"""Results in a form that tables and charts of every experiment can be made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from srwm.errors import InputError

__all__ = ["LARGEST", "Chart", "Line", "Measure"]

LARGEST = 1e100
"""Figures beyond mean nothing, and their squares would be no numbers any more."""


@dataclass(frozen=True)
class Measure:
    """One figure."""

    name: str
    """What was measured; runs that measured the same say it in the same words."""
    value: float
    """The figure."""
    interval: float | None = None
    """Half its 95% interval, from the spread within this run."""
    paper: float | None = None
    """The paper's."""
    percent: bool = False
    """Whether the figures are shares, shown times 100."""

    def __post_init__(self) -> None:
        for value in (self.value, self.interval, self.paper):
            if value is not None and not abs(value) <= LARGEST:
                raise InputError(f"{self.name} is {value}; expected a figure between -{LARGEST:g} and {LARGEST:g}")

    def shown(self, value: float) -> str:
        """A figure of this kind in words."""
        return f"{value:.2%}" if self.percent else f"{value:.4g}"

    def __str__(self) -> str:
        return self.shown(self.value) + ("" if self.interval is None else f" ± {self.shown(self.interval)}")


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    """What the legend says."""
    xs: Sequence[float]
    """Where its points are."""
    ys: Sequence[float]
    """How high they are."""


@dataclass(frozen=True)
class Chart:
    """Lines over one axis."""

    title: str
    """What it shows; charts of the same title are drawn as one where runs are compared."""
    x_label: str
    """What the axis below is."""
    lines: tuple[Line, ...]
    """What is drawn."""
    percent: bool = False
    """Whether the heights are shares, shown times 100."""
    marks: tuple[tuple[float, str], ...] = ()
    """Upright lines, and what stands to the right of each."""
    compares: bool = False
    """Whether its lines are of several runs."""

    @property
    def has_legend(self) -> bool:
        """Whether the lines must be told apart."""
        return self.compares or len(self.lines) > 1
