"""The most important numbers of a record, as JSON values and as a table for a terminal."""

import math
from typing import Any

from rich.markup import escape
from rich.table import Table
from torch import Tensor

from .record import Inspection, MatrixRecord


def summarise(inspection: Inspection) -> list[dict[str, Any]]:
    """Give the most important numbers of each matrix as JSON values.

    Learning rates, what forget gates let go of and entropies are over all recorded rows, steps and heads; sizes, ranks
    and how far the function has moved are means over rows and heads at the last recorded step. What was not kept or
    makes no sense is None.
    """
    return [_summary(record) for record in inspection]


def summary_table(record: MatrixRecord) -> Table:
    """Show the most important numbers of a matrix, a line for each of its parts."""
    found = _summary(record)
    table = Table(title=escape(record.name), title_justify="left", caption_justify="left")
    table.add_column("part")
    for heading in ("learning rate", "lowest", "highest", "change", "effective rank"):
        table.add_column(heading, justify="right")
    for part, numbers in found["parts"].items():
        rate, change = numbers["rate"] or {}, numbers["relative_change"]
        table.add_row(
            part,
            *(_number(rate.get(name), 2) for name in ("mean", "min", "max")),
            _number(numbers["change"], 2) if change is None else _percent(change),
            _number(numbers["rank"], 1) + ("" if numbers["rank"] is None else f" of {_most(record, part)}"),
        )
    table.caption = (
        f"The function moved by {_percent(found['moved'])}. Entropy of the queries {_percent(found['query_entropy'])}, "
        f"of the keys {_percent(found['key_entropy'])}."
    )
    if record.forget_gates:
        table.caption += f" Forgotten a step: {_forgotten(record)}."
    return table


def summary_note(inspection: Inspection) -> str:
    """Say what the numbers of the tables are."""
    first, fast = inspection[0], any(record.kind == "delta_rule" for record in inspection)
    shown = f"{_count(len(first.step), 'step')}, {_count(len(first.rows), 'row')}"
    error = max(float(record.deviation) for record in inspection)
    return (
        f"{shown}. Change, rank and function: at the last step, mean of rows and heads; a change is relative to the "
        + ("initial matrix, that of fast weights is their norm" if fast else "initial matrix")
        + f"; entropies are relative to the largest possible. Computed again within {error:.0e} of what the model did."
    )


def _summary(record: MatrixRecord) -> dict[str, Any]:
    kept = record.change is not None
    largest = math.log(record.weight.shape[1]) if record.weight.shape[1] > 1 else 1.0
    moves = record.kind != "fixed"
    return {
        "name": record.name,
        "kind": record.kind,
        "steps": len(record.step),
        "rows": len(record.rows),
        "heads": len(record.heads),
        "parts": {part: _part(record, part, place) for place, part in enumerate(record.parts)},
        "moved": _finite(record.moved[:, -1].mean()) if kept else None,
        "query_entropy": _finite(record.query_entropy.mean() / largest) if moves else None,
        "key_entropy": _finite(record.key_entropy.mean() / largest) if moves else None,
        "deviation": _finite(record.deviation),
    }


def _part(record: MatrixRecord, part: str, place: int) -> dict[str, Any]:
    kept = record.change is not None
    rates = None if record.kind == "fixed" else record.rates_of(part)
    return {
        "rate": None if rates is None else _range(rates),
        "forget": _range(record.forget_of(part)) if record.forget_gates else None,
        "change": _finite(record.norm[:, -1, :, place].mean()) if kept else None,
        "relative_change": _finite(record.relative_norm[:, -1, :, place].mean()) if kept else None,
        "rank": _finite(record.effective_rank[:, -1, :, place].mean()) if kept else None,
    }


def _forgotten(record: MatrixRecord) -> str:
    """What each forget gate lets go of at a step: the mean, and from where to where it goes."""
    found = [_range(record.forget[..., gate]) for gate in range(record.forget_gates)]
    words = [f"{each['mean']:.2%} ({each['min']:.2%} to {each['max']:.2%})" for each in found]
    return words[0] if len(words) == 1 else f"{words[0]} of the y columns, {words[1]} of all others"


def _range(values: Tensor) -> dict[str, float]:
    return {"mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}


def _most(record: MatrixRecord, part: str) -> int:
    """The largest rank that a part can have."""
    return min(record.weight.shape[1], record.columns[record.parts.index(part)])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _finite(value: Tensor) -> float | None:
    return float(value) if math.isfinite(float(value)) else None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
