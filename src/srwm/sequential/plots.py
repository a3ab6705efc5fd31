"""Pictures of runs on streams: how a model adapts along a stream, and how training on streams succeeds or fails."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from srwm.errors import InputError
from srwm.runs.metrics import read_metrics
from srwm.runs.pictures import calm, legend, new_figure, write
from srwm.runs.results import read_part
from srwm.runs.run_folder import RunFolder

from .evaluation import StreamEvaluation
from .loading import KIND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL = (5.2, 3.4)


def plot_adaptation(runs: Mapping[str, Path], out: Path) -> None:
    """Draw accuracy along the stream, one picture beside the other for each order, one line for each run.

    Args:
        runs: folders of tested runs on the same sources, by the name that the legend shows, such as "SRWM".
        out: the picture; its ending says of what kind (.png, .svg, .pdf).

    Raises:
        InputError: if a folder holds no tested run on streams, the runs differ in their streams, or matplotlib is not
            there.
    """
    tested = {name: _tested(path) for name, path in runs.items()}
    streams = {tuple((order.sources, len(order.curve)) for order in found.orders) for found in tested.values()}
    if len(streams) != 1:
        raise InputError(f"{len(runs)} runs have {len(streams)} kinds of streams; expected runs on the same sources")
    (orders,) = streams
    figure, (panels,) = new_figure(1, len(orders), _PANEL, sharey=True)
    for place, (panel, (sources, length)) in enumerate(zip(panels, orders, strict=True)):
        for name, found in tested.items():
            panel.plot(range(length), [100 * value for value in found.orders[place].curve], label=name, linewidth=1.2)
        _mark_segments(panel, sources, length)
        panel.set_xlabel("step of the stream")
        panel.set_ylim(0, 100)
    _finish(figure, panels, "accuracy (%)", out)


def plot_training(runs: Mapping[str, Path], out: Path, *, source: str | None = None) -> None:
    """Draw the accuracy on the k-th instances over the training, one picture beside the other for each run.

    It is the paper's figure of a "successful" and an "unsuccessful" training, in which only the first instances are
    learnt.

    Args:
        runs: folders of runs, finished or not, by the title that their picture gets.
        out: the picture; its ending says of what kind.
        source: which source; None for the first.

    Raises:
        InputError: if a folder holds no run on streams with metrics of this source, or matplotlib is not there.
    """
    curves = {title: _training_curves(path, source) for title, path in runs.items()}
    figure, (panels,) = new_figure(1, len(runs), _PANEL, sharey=True)
    for panel, (title, lines) in zip(panels, curves.items(), strict=True):
        for name, (steps, values) in lines.items():
            panel.plot(steps, [100 * value for value in values], label=name, linewidth=1.0)
        panel.set_title(title)
        panel.set_xlabel("training step")
        panel.set_ylim(0, 100)
    _finish(figure, panels, "training accuracy (%)", out)


def _tested(path: Path) -> StreamEvaluation:
    result = RunFolder.open(path, kind=KIND).read_result()
    if result is None or result.get("test") is None:
        raise InputError(f"{path} has not been tested yet: finish it with `srwm train --resume`")
    return read_part(StreamEvaluation, result["test"])


def _training_curves(path: Path, source: str | None) -> dict[str, tuple[list[int], list[float]]]:
    """Steps and accuracies on each instance, by name."""
    folder = RunFolder.open(path, kind=KIND)
    records = read_metrics(folder.metrics_path) if folder.metrics_path.exists() else []
    lines: dict[str, tuple[list[int], list[float]]] = {}
    for record in records:
        for key, value in record.items():
            first, _, rest = key.partition("/")
            name, _, instance = rest.rpartition("/")
            if first != "train" or not instance.startswith("k") or not instance[1:].isdecimal():
                continue
            source = source or name
            if name == source:
                steps, values = lines.setdefault(f"instance {instance[1:]}", ([], []))
                steps.append(record["step"])
                values.append(float(value))
    if not lines:
        what = f"of {source!r}" if source else "of any source"
        raise InputError(f"{folder.metrics_path} holds no training accuracies {what}")
    return lines


def _mark_segments(panel: "Axes", sources: Sequence[str], length: int) -> None:
    """Draw a line where the data set changes, and name each segment."""
    each = length // len(sources)
    for index, source in enumerate(sources):
        if index:
            panel.axvline(index * each - 0.5, color="black", linewidth=0.8, linestyle=":")
        panel.text((index + 0.5) * each, 3, source, ha="center", va="bottom", fontsize="small", color="dimgray")


def _finish(figure: "Figure", panels: Sequence["Axes"], label: str, out: Path) -> None:
    panels[0].set_ylabel(label)
    legend(figure, panels)
    for panel in panels:
        calm(panel)
    write(figure, out)
