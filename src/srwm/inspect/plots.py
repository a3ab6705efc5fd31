"""Pictures of what a model does to its own weights; each function writes one file."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from srwm.errors import InputError
from srwm.runs.pictures import FAINT, calm, legend, new_figure, write

from ._figure import COLOURS, INK, gate_names, headline, layer_title, part_name, step_axis
from .record import Inspection, MatrixRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_BAND = (0.50, 0.65)
"""Between these values the paper saw all four learning rates, in games (section 5, "Interpretability")."""


def check_drawable(inspection: Inspection) -> None:
    """Refuse, before anything is written, what the functions below could not draw.

    Raises:
        InputError: if no layer changes, or matplotlib is not there.
    """
    _changing(inspection)
    new_figure(1, 1, (1.0, 1.0))


def plot_learning_rates(inspection: Inspection, out: Path, *, paper_band: bool = False) -> None:
    """Draw the learning rates over time, and beside them what forget gates let go of: a row of panels for each layer.

    Args:
        inspection: what was seen; rows of the batch are averaged.
        out: the picture; its ending says of what kind (.png, .svg, .pdf).
        paper_band: whether to mark where the paper's learning rates were.

    Raises:
        InputError: if no layer changes, or the picture cannot be drawn.
    """
    records = _changing(inspection)
    figure, panels = new_figure(len(records), _widest(records), (_panel_width(records), 2.0), sharex="row")
    for panel, record, series in _each_series(panels, records, inspection):
        if paper_band and not series.is_gate:
            for edge in PAPER_BAND:
                panel.axhline(edge, color=FAINT, linewidth=0.9, linestyle=(0, (2, 2)))
        for low, high, strength in ((0.0, 1.0, 0.12), (0.25, 0.75, 0.25)):
            limits = series.values.quantile(low, dim=1), series.values.quantile(high, dim=1)
            panel.fill_between(record.step, *limits, color=series.colour, alpha=strength, linewidth=0)
        panel.plot(record.step, series.values.mean(dim=1), color=series.colour, linewidth=1.8, **_dots(record, 4))
        if series.is_gate:
            _log_of_percent(panel)
        else:
            panel.set_ylim(0, 1)
        calm(panel)
        step_axis(panel, record, label=record is records[-1])
    words = "Learning rates" + _and_gates(records) + ": mean of the heads, middle half of them, all of them"
    headline(figure, words + "; dashed, the paper's range in games" * paper_band)
    write(figure, out)


def plot_rates_by_head(inspection: Inspection, out: Path) -> None:
    """Draw the learning rates and forget gates of each head over time, as maps: a row of panels for each layer.

    Raises:
        InputError: if no layer changes, or the picture cannot be drawn.
    """
    records = _changing(inspection)
    # Few heads, too, have a name as long as that of a layer beside them.
    height = max(2.0, 0.11 * max(len(record.heads) for record in records) + 0.9)
    figure, panels = new_figure(
        len(records), _widest(records), (_panel_width(records), height), sharex="row", sharey="row"
    )
    most = max((float(record.forget.max()) for record in records if record.forget_gates), default=1.0)
    drawn = {}
    for panel, record, series in _each_series(panels, records, inspection):
        half, heads = inspection.every / 2, len(record.heads)
        extent = (float(record.step[0]) - half, float(record.step[-1]) + half, heads - 0.5, -0.5)
        scale: dict[str, Any] = {"cmap": "YlOrBr", "vmin": 0, "vmax": most} if series.is_gate else _OF_RATES
        shown = panel.imshow(series.values.T.numpy(), aspect="auto", extent=extent, interpolation="nearest", **scale)
        drawn["forgotten" if series.is_gate else "rate"] = shown
        calm(panel)
        panel.grid(visible=False)
        step_axis(panel, record, label=record is records[-1])
        panel.set_xlim(*extent[:2])
        ticks = range(0, heads, max(1, heads // 8))
        panel.set_yticks(list(ticks), [str(record.heads[head]) for head in ticks], fontsize="x-small")
    headline(figure, "Learning rate" + _and_gates(records) + " of each head")
    for name, shown in drawn.items():
        bar = figure.colorbar(shown, ax=[panel for row in panels for panel in row], fraction=0.02, pad=0.01, aspect=40)
        bar.ax.tick_params(labelsize="x-small", colors=FAINT, length=2)
        if len(drawn) > 1:
            bar.set_label(name, fontsize="x-small", color=FAINT)
    write(figure, out)


_OF_RATES: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": 1}


class _Series(NamedTuple):
    """What a panel shows of a layer over time."""

    title: str
    colour: str
    values: Tensor
    """Of each step and head, the mean of the rows [t, h]."""
    is_gate: bool
    """Whether it is what a forget gate lets go of, and not a learning rate."""


def _series(record: MatrixRecord) -> list[_Series]:
    """The learning rates of a layer, then what its forget gates let go of."""
    # The columns of the gates have the rate of the beta columns.
    rated = [part for part in record.parts if part != "forget"]
    rates = [
        _Series(f"rate of {part_name(part)}", COLOURS[part], record.rates_of(part).mean(dim=0), False) for part in rated
    ]
    gates = [
        _Series(f"forgotten of {name}", COLOURS["forget"], record.forget[..., gate].mean(dim=0), True)
        for gate, name in enumerate(gate_names(record))
    ]
    return rates + gates


def _each_series(
    panels: list[list["Axes"]], records: list[MatrixRecord], inspection: Inspection
) -> Iterator[tuple["Axes", MatrixRecord, _Series]]:
    """Go through the panels of a grid of layers and what is shown of them, with their titles."""
    for row, record in zip(panels, records, strict=True):
        shown = _series(record)
        for panel in row[len(shown) :]:
            panel.set_visible(False)
        for panel, series in zip(row, shown, strict=False):
            panel.set_title(series.title, fontsize="medium", color=series.colour)
            yield panel, record, series
            # Rates have one scale, which stands at the left; what is forgotten has its own.
            if not series.is_gate and panel is not row[0]:
                panel.tick_params(labelleft=False)
        row[0].set_ylabel(layer_title(inspection, record).replace(": ", "\n"), fontsize="small", color=INK)


def _log_of_percent(panel: "Axes") -> None:
    """Give a panel of small shares a logarithmic axis, with a few numbers on it even where they are much alike."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    panel.yaxis.set_minor_locator(LogLocator(subs=()))


def _and_gates(records: list[MatrixRecord]) -> str:
    """What a headline adds where there are forget gates."""
    return " and share forgotten at a step" if any(record.forget_gates for record in records) else ""


def _widest(records: list[MatrixRecord]) -> int:
    return max(len(_series(record)) for record in records)


def _panel_width(records: list[MatrixRecord]) -> float:
    return 2.6 if _widest(records) > 1 else 5.2


def plot_change(inspection: Inspection, out: Path) -> None:
    """Draw how far each part of the matrices, and the function they compute, has moved, one panel for each layer.

    Lines are means over rows and heads; `plot_heads` tells the heads apart. Of fast weights, which start from zero, the
    norm alone is drawn.

    Raises:
        InputError: if no layer changes, the matrices were not kept, or the picture cannot be drawn.
    """
    records = _changing(inspection)
    figure, panels = new_figure(1, len(records), (4.4, 3.2))
    for panel, record in zip(panels[0], records, strict=True):
        from_zero = record.kind == "delta_rule"
        for place, part in enumerate(record.parts):
            sizes = record.norm if from_zero else record.relative_norm
            mean = sizes[..., place].mean(dim=(0, 2))
            panel.plot(record.step, mean, color=COLOURS[part], linewidth=1.8, label=part_name(part), **_dots(record, 4))
        if not from_zero:
            moved = record.moved.mean(dim=(0, 2))
            panel.plot(record.step, moved, color=INK, linewidth=1.4, linestyle="--", label="the function")
        panel.set_title(layer_title(inspection, record), fontsize="medium", color=INK)
        wording = "norm of the fast weights" if from_zero else "size of the change / initial size"
        panel.set_ylabel(wording, fontsize="small", color=FAINT)
        panel.set_ylim(bottom=0)
        calm(panel)
        step_axis(panel, record)
    legend(figure, panels[0])
    write(figure, out)


def plot_ranks(inspection: Inspection, out: Path) -> None:
    """Draw how many directions the changes use: their effective rank over time, and their singular values at the end.

    Raises:
        InputError: if no layer changes, the matrices were not kept, or the picture cannot be drawn.
    """
    records = _changing(inspection)
    figure, panels = new_figure(2, len(records), (4.4, 2.8))
    for column, record in enumerate(records):
        above, below = panels[0][column], panels[1][column]
        for place, part in enumerate(record.parts):
            style: dict[str, Any] = {"color": COLOURS[part], "linewidth": 1.8}
            rank = record.effective_rank[..., place].mean(dim=(0, 2))
            above.plot(record.step, rank, label=part_name(part), **style, **_dots(record, 4))
            values = record.singular_values[part][:, -1].mean(dim=(0, 1))
            below.plot(range(1, len(values) + 1), values, marker="o", markersize=3, **style)
        above.set_title(layer_title(inspection, record), fontsize="medium", color=INK)
        above.set_ylim(bottom=0)
        below.set_ylim(bottom=0)
        for panel in (above, below):
            calm(panel)
        step_axis(above, record)
        below.set_xlabel("singular value, largest first", fontsize="small", color=FAINT)
    panels[0][0].set_ylabel("effective rank of the change", fontsize="small", color=FAINT)
    panels[1][0].set_ylabel("size at the end", fontsize="small", color=FAINT)
    legend(figure, panels[0])
    write(figure, out)


def plot_heads(inspection: Inspection, out: Path) -> None:
    """Compare the heads of each layer in a table of colours; each column has a scale of its own.

    Raises:
        InputError: if no layer changes, the matrices were not kept, or the picture cannot be drawn.
    """
    records = _changing(inspection)
    heads = max(len(record.heads) for record in records)
    groups = [_head_groups(record) for record in records]
    width = max(sum(map(len, each)) + len(each) for each in groups)
    figure, panels = new_figure(len(records), 1, (0.55 * width + 0.4, 0.26 * heads + 1.0))
    for (panel,), record, each in zip(panels, records, groups, strict=True):
        _draw_table(panel, record, each)
        panel.set_title(layer_title(inspection, record), fontsize="medium", color=INK, pad=10)
        panel.set_ylabel("head", fontsize="small", color=FAINT)
    write(figure, out)


def _head_groups(record: MatrixRecord) -> list[list[tuple[str, Tensor]]]:
    """What is compared, in groups: a heading, and a number for each head."""
    sizes = record.norm if record.kind == "delta_rule" else record.relative_norm
    # One rate may serve all parts; the columns of the gates have that of the beta columns.
    rated = record.parts[: record.beta.shape[-1]]
    forgotten = [
        (f"forgets %\n{name.removeprefix('all ')}", 100 * record.forget[..., gate].mean(dim=(0, 1)))
        for gate, name in enumerate(gate_names(record))
    ]

    def at_end(name: str, values: Tensor) -> list[tuple[str, Tensor]]:
        return [
            (f"{name}\n{part_name(part)}", values[:, -1, :, place].mean(dim=0))
            for place, part in enumerate(record.parts)
        ]

    return [
        [(f"rate\n{part_name(part)}", record.rates_of(part).mean(dim=(0, 1))) for part in rated],
        *([forgotten] if forgotten else []),
        at_end("change", sizes),
        at_end("rank", record.effective_rank),
        [
            ("function\nmoved", record.moved[:, -1].mean(dim=0)),
            ("query\nentropy", record.query_entropy.mean(dim=(0, 1))),
            ("key\nentropy", record.key_entropy.mean(dim=(0, 1))),
        ],
    ]


def _draw_table(panel: "Axes", record: MatrixRecord, groups: list[list[tuple[str, Tensor]]]) -> None:
    """Draw a cell for each number, with a gap between groups; the darkest of a column is its largest."""
    left, places, headings = 0.0, [], []
    for group in groups:
        for heading, values in group:
            low, high = float(values.min()), float(values.max())
            shade = (values - low) / (high - low) if high > low else 0 * values
            extent = (left - 0.5, left + 0.5, len(values) - 0.5, -0.5)
            panel.imshow(shade[:, None].numpy(), cmap="Blues", vmin=0, vmax=1.6, aspect="auto", extent=extent)
            for row, value in enumerate(values.tolist()):
                panel.text(left, row, _short(value), ha="center", va="center", fontsize="x-small", color=INK)
            places.append(left)
            headings.append(heading)
            left += 1
        left += 0.4
    panel.set_xlim(-0.5, left - 0.9)
    panel.set_xticks(places, headings, fontsize="x-small", color=INK)
    panel.set_yticks(range(len(record.heads)), [str(head) for head in record.heads], fontsize="x-small", color=INK)
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    for side in panel.spines.values():
        side.set_visible(False)


def _short(value: float) -> str:
    """A number in at most four signs."""
    if not math.isfinite(value):
        return "-"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"


def _changing(inspection: Inspection) -> list[MatrixRecord]:
    records = [record for record in inspection if record.kind != "fixed"]
    if not records:
        raise InputError("no recorded layer changes its weights; there is nothing to draw")
    return records


def _dots(record: MatrixRecord, size: int) -> dict[str, Any]:
    """Mark the steps where they are few."""
    return {"marker": "o", "markersize": size} if len(record.step) <= 30 else {}
