"""Which rows of a matrix hold what was learnt when: the change of each row, by the span of steps that wrote it."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from srwm.errors import InputError
from srwm.runs.pictures import FAINT, new_figure, write

from ._figure import INK, headline, layer_title
from .record import Inspection, MatrixRecord


def written_in_spans(record: MatrixRecord, spans: Sequence[int], *, row: int = 0) -> Float[Tensor, "spans h d"]:
    """The size of what each span of steps wrote into each row of the y columns, as far as it is kept in the end.

    It is exact: the change of a matrix is the sum of what its steps wrote, each as far as it has been kept since. What
    one span wrote may cancel what another did, so the sizes need not add up to that of the whole change.

    Args:
        record: of a layer, every step of it.
        spans: the number of the span of each recorded step, from 0; -1 for steps that belong to none.
        row: place of the row of the batch among the recorded ones.

    Raises:
        InputError: if there is no such row, or the spans are not one for each step.
    """
    rows, steps = record.episode.shape
    if not 0 <= row < rows:
        raise InputError(f"row={row}; the record has {rows} rows, from 0 on")
    if len(spans) != steps:
        raise InputError(f"there are {len(spans)} spans for {steps} recorded steps; expected one for each")
    write, key = record.write[row, ..., : record.columns[0]], record.key[row]
    if record.forget_gates:
        log_kept = record.log_kept[row, ..., 0]
        write = (log_kept[-1] - log_kept).exp().to(write)[..., None] * write
    number = torch.tensor(list(spans))
    sizes = [
        torch.einsum("thd,the->hde", key[number == span], write[number == span]).norm(dim=-1)
        for span in range(max(spans, default=-1) + 1)
    ]
    return torch.stack(sizes)


def plot_spans(inspection: Inspection, spans: Sequence[int], names: Sequence[str], out: Path) -> None:
    """Draw for each layer which rows of its matrices hold what was written in which span of steps.

    Args:
        inspection: what was seen; its first row is drawn.
        spans: the number of the span of each recorded step, from 0; -1 for steps that belong to none.
        names: what each span is called.
        out: the picture; its ending says of what kind.

    Raises:
        InputError: if no layer changes, or the picture cannot be drawn.
    """
    records = [record for record in inspection if record.kind != "fixed"]
    if not records:
        raise InputError("no recorded layer changes its weights; there is nothing to draw")
    sizes = [written_in_spans(record, spans).flatten(1) for record in records]
    limit = max(1e-12, *(float(each.max()) for each in sizes))
    figure, (panels,) = new_figure(1, len(records), (max(3.2, 0.55 * len(names) + 1.6), 4.4))
    for panel, record, each in zip(panels, records, sizes, strict=True):
        panel.imshow(each.T.numpy(), aspect="auto", vmin=0, vmax=limit, cmap="Blues", interpolation="nearest")
        depth = each.shape[1] // len(record.heads)
        for head in range(1, len(record.heads)):
            panel.axhline(head * depth - 0.5, color="#999999", linewidth=0.6)
        panel.set_xticks(range(len(names)), list(names), rotation=45, ha="right")
        panel.set_yticks(
            [head * depth + (depth - 1) / 2 for head in range(len(record.heads))],
            [f"head {number}" for number in record.heads],
        )
        panel.tick_params(labelsize="small", colors=FAINT, length=0)
        panel.set_title(layer_title(inspection, record), fontsize="medium", color=INK)
    headline(figure, f"What was written into each row of the matrix, by task; darkest: {limit:.2g}")
    write(figure, out)
