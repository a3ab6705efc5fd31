"""What the page is told, as JSON values."""

import base64
from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor

from srwm.data.sources import SOURCES
from srwm.nn import SelfReferentialLinear

from .drawing import Look
from .learner import DrawingAnswer, DrawingLearner, Moment
from .matrix_steps import MatrixStep, MatrixWatcher
from .requests import MAX_NAME, MAX_PICTURE_BYTES, encode_pixels
from .session import MAX_EXAMPLES, Session

DIGITS = 4
"""Digits after the point: more than a page can show."""
_KEPT_DIGITS = 6
"""Digits after the point of what a gate keeps, which is close to one."""


def model_view(name: str, learner: DrawingLearner, look: Look) -> dict[str, Any]:
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
        "layers": [layer_view(matrix) for matrix in learner.matrices],
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
    return [matrix_view(layer.change, layer.rates, layer.kept) for layer in moment.layers]


def layers_view(watcher: MatrixWatcher, steps: Sequence[MatrixStep]) -> list[dict[str, Any]]:
    """Show what a step did to the matrices of each layer, and by which share of its size each has moved."""
    return [
        {
            **matrix_view(step.change, step.rates, step.kept),
            "moved": round(float(step.change.norm()) / float(matrix.weight.detach().norm()), DIGITS),
        }
        for step, matrix in zip(steps, watcher.matrices, strict=True)
    ]


def layer_view(matrix: SelfReferentialLinear) -> dict[str, Any]:
    """Say what the matrices of a layer are."""
    return {
        "heads": matrix.num_heads,
        "rows": matrix.head_dim,
        "columns": list(matrix.columns),
        "keeps_least": round(1 - matrix.forget_max, DIGITS) if matrix.forget_gates else None,
    }


def matrix_view(
    change: Float[Tensor, "h d m"], rates: Float[Tensor, "h r"] | None, kept: Float[Tensor, "h g"] | None
) -> dict[str, Any]:
    """Show what a step did to the matrices of a layer."""
    peak = _peak(change)
    scaled = change * (127 / peak) if peak else change
    return {
        "peak": peak,
        "change": base64.b64encode(scaled.round().clamp(-127, 127).char().contiguous().numpy().tobytes()).decode(),
        "rates": _rows(rates, DIGITS),
        "kept": _rows(kept, _KEPT_DIGITS),
    }


def answer_view(answer: DrawingAnswer) -> dict[str, Any]:
    """Show the probabilities."""
    return {
        "on": [round(each, DIGITS) for each in answer.on],
        "off": [round(each, DIGITS) for each in answer.off],
    }


def _peak(change: Float[Tensor, "h d m"]) -> float:
    return float(change.abs().max())


def _rows(values: Float[Tensor, "h r"] | None, digits: int) -> list[list[float]] | None:
    return None if values is None else [[round(value, digits) for value in row] for row in values.tolist()]
