"""What the page is told, as JSON values."""

import base64
from typing import Any

from jaxtyping import Float
from torch import Tensor

from srwm.data.sources import SOURCES

from .drawing import Look
from .learner import Answer, Learner, Moment
from .requests import MAX_NAME, MAX_PICTURE_BYTES, encode_pixels
from .session import MAX_EXAMPLES, Session

DIGITS = 4
"""Digits after the point: more than a page can show."""


def model_view(name: str, learner: Learner, look: Look) -> dict[str, Any]:
    """Say what the page shows: the model, its matrices, and the limits of what may be asked."""
    channels, size, _ = learner.model.image_shape
    source = learner.model.config.task.source
    return {
        "name": name,
        "source": SOURCES[source].title if source in SOURCES else source,
        "ways": learner.model.ways,
        "channels": channels,
        "image_size": size,
        "parameters": sum(parameter.numel() for parameter in learner.model.parameters()),
        "pen": look.pen,
        "layers": [
            {"heads": matrix.num_heads, "rows": matrix.head_dim, "columns": list(matrix.columns)}
            for matrix in learner.matrices
        ],
        "limits": {"examples": MAX_EXAMPLES, "name": MAX_NAME, "picture_bytes": MAX_PICTURE_BYTES},
    }


def session_view(session: Session) -> dict[str, Any]:
    """Say what was taught, and how far each layer had moved after each example."""
    sizes = [float(matrix.weight.detach().norm()) for matrix in session.learner.matrices]
    return {
        "tasks": session.tasks,
        "examples": [
            {
                "number": example.number,
                "task": example.task,
                "label": example.label,
                "pixels": encode_pixels(example.image),
            }
            for example in session.examples
        ],
        "moments": [
            [
                {"moved": round(float(layer.change.norm()) / size, DIGITS), "peak": _peak(layer.change)}
                for layer, size in zip(moment.layers, sizes, strict=True)
            ]
            for moment in session.moments
        ],
    }


def moment_view(moment: Moment) -> list[dict[str, Any]]:
    """Show each layer: the change of its matrices in bytes from -127 to 127 for -peak to peak, and its rates."""
    return [matrix_view(layer.change, layer.rates) for layer in moment.layers]


def matrix_view(change: Float[Tensor, "h d m"], rates: Float[Tensor, "h r"] | None) -> dict[str, Any]:
    """Show one layer."""
    peak = _peak(change)
    scaled = change * (127 / peak) if peak else change
    return {
        "peak": peak,
        "change": base64.b64encode(scaled.round().clamp(-127, 127).char().contiguous().numpy().tobytes()).decode(),
        "rates": None if rates is None else [[round(rate, DIGITS) for rate in row] for row in _rows(rates)],
    }


def answer_view(answer: Answer) -> dict[str, Any]:
    """Show the probabilities."""
    return {
        "on": [round(each, DIGITS) for each in answer.on],
        "off": [round(each, DIGITS) for each in answer.off],
    }


def _peak(change: Float[Tensor, "h d m"]) -> float:
    return float(change.abs().max())


def _rows(rates: Float[Tensor, "h r"]) -> list[list[float]]:
    rows: list[list[float]] = rates.tolist()
    return rows
