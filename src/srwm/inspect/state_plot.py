"""How a matrix holds the state that a task asks for: the places that it moves between, as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.errors import InputError
from srwm.runs.pictures import FAINT, calm, new_figure, write

from ._figure import INK, headline, layer_title, step_axis
from .record import Inspection, MatrixRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#3b6fb6", "#d98032", "#4f9d69", "#b5485d", "#8a7333", "#6b5b95")
_MOST_WORDS = 60
"""Symbols of a sequence that are written above its steps."""
_MOST_NAMES = len(_COLOURS)
"""States that a legend names; with more, colours come up again."""


class Places(NamedTuple):
    """Where a matrix is after each step, in the plane that tells the states apart best."""

    points: Float[Tensor, "b t 2"]
    """The change of the matrix, all heads together, seen in that plane."""
    told: float
    """Share of the steps whose state is that of the nearest place, by the whole matrix; a place is the mean of all
    steps in a state."""


def places_of_states(record: MatrixRecord, states: Int[Tensor, "b t"]) -> Places:
    """Find the plane in which the mean changes of the states lie furthest apart.

    Where there are only two states, they give one direction; the second one is that in which what is left varies most.

    Args:
        record: of a matrix, kept after each step.
        states: the number of the state after each of its recorded steps.

    Raises:
        InputError: if the matrices were not kept, or there is only one state.
    """
    changes = record.changes().flatten(0, 1).flatten(1).double()
    numbers = states.flatten()
    present = numbers.unique()
    if len(present) < 2:
        raise InputError("only one state came up; expected at least two: show longer sequences")
    centred = changes - changes.mean(dim=0)
    means = torch.stack([centred[numbers == each].mean(dim=0) for each in present])
    counts = torch.stack([(numbers == each).sum() for each in present])
    told = (torch.cdist(centred, means).argmin(dim=1) == torch.searchsorted(present, numbers)).double().mean()
    apart = torch.linalg.svd(means * counts[:, None].sqrt(), full_matrices=False).Vh
    first = apart[0]
    if len(present) > 2:
        second = apart[1]
    else:
        left = centred - centred @ first[:, None] * first
        second = torch.linalg.svd(left, full_matrices=False).Vh[0]
    points = centred @ torch.stack([first, second], dim=1)
    return Places(points.reshape(*states.shape, 2), float(told))


def plot_states(
    inspection: Inspection,
    states: Int[Tensor, "b t"],
    names: Sequence[str],
    out: Path,
    *,
    words: Sequence[str] = (),
) -> None:
    """Draw the places between which the matrices of each layer move, and below them the way of the first row.

    Args:
        inspection: what was seen.
        states: the number of the state after each recorded step of each recorded row: what the task asks for.
        names: what each state is called.
        out: the picture; its ending says of what kind.
        words: what the first row read at each recorded step; none for nothing.

    Raises:
        InputError: if no layer changes, only one state came up, or the picture cannot be drawn.
    """
    records = [record for record in inspection if record.kind != "fixed"]
    if not records:
        raise InputError("no recorded layer changes its weights; there is nothing to draw")
    found = [places_of_states(record, states) for record in records]
    figure, ((*planes,), (*ways,)) = new_figure(2, len(records), (4.6, 3.0))
    for plane, way, record, places in zip(planes, ways, records, found, strict=True):
        _draw_plane(plane, places, states, names)
        title = layer_title(inspection, record)
        told = f"the nearest place tells the answer in {100 * places.told:.0f}% of steps"
        plane.set_title(f"{title}\n{told}", fontsize="medium", color=INK)
        _draw_way(way, record, places, states, words)
    planes[0].set_ylabel("another direction", fontsize="small", color=FAINT)
    ways[0].set_ylabel("between the places", fontsize="small", color=FAINT)
    if len(names) <= _MOST_NAMES:
        planes[-1].legend(
            title="right answer", title_fontsize="x-small", fontsize="x-small", frameon=False, loc="center"
        )
    headline(figure, "Where each matrix is after every step, coloured by the right answer; below, along one sequence")
    write(figure, out)


def _colour(state: int) -> str:
    return _COLOURS[state % len(_COLOURS)]


def _draw_plane(panel: "Axes", places: Places, states: Tensor, names: Sequence[str]) -> None:
    """A dot for each step of each row; thin lines follow the first row."""
    panel.plot(*places.points[0].T.numpy(), color=FAINT, linewidth=0.5, alpha=0.5, zorder=1)
    flat = places.points.flatten(0, 1)
    for state in states.unique().tolist():
        dots = flat[states.flatten() == state]
        style: dict[str, Any] = {"s": 12, "color": _colour(state), "linewidths": 0, "zorder": 2}
        panel.scatter(dots[:, 0].numpy(), dots[:, 1].numpy(), label=names[state], **style)
    panel.set_xlabel("between the places", fontsize="small", color=FAINT)
    calm(panel)


def _draw_way(panel: "Axes", record: MatrixRecord, places: Places, states: Tensor, words: Sequence[str]) -> None:
    """The first row over its steps, in the direction that tells most."""
    along = places.points[0, :, 0]
    panel.plot(record.step, along, color=FAINT, linewidth=0.8, drawstyle="steps-post", zorder=1)
    panel.scatter(record.step, along, s=14, c=[_colour(state) for state in states[0].tolist()], linewidths=0, zorder=2)
    calm(panel)
    step_axis(panel, record)
    if 0 < len(words) <= _MOST_WORDS:
        for step, word in zip(record.step.tolist(), words, strict=True):
            place = {"xytext": (0, 3), "textcoords": "offset points", "annotation_clip": False}
            panel.annotate(
                word,
                (step, 1.0),
                xycoords=("data", "axes fraction"),
                ha="center",
                fontsize=5,
                color=INK,
                **place,  # type: ignore[arg-type]
            )
