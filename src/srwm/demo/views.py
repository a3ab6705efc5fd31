"""What the page is told, as JSON values."""

import base64
from typing import Any

from jaxtyping import Float
from torch import Tensor

from srwm.data.sources import SOURCES

from .drawing import Look
from .learner import Answer, Layer, Learner, Moment
from .requests import MAX_NAME, MAX_PICTURE_BYTES, encode_pixels
from .session import MAX_EXAMPLES, Session

_DIGITS = 4
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
            {
                "heads": matrix.num_heads,
                "rows": matrix.head_dim,
                "columns": list(matrix.columns),
                "learning_rates": matrix.learning_rates,
                "forget_gates": matrix.forget_gates,
                "forget_max": matrix.forget_max,
            }
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
                {"moved": round(float(layer.change.norm()) / size, _DIGITS), "peak": _peak(layer.change)}
                for layer, size in zip(moment.layers, sizes, strict=True)
            ]
            for moment in session.moments
        ],
    }


def moment_view(moment: Moment) -> list[dict[str, Any]]:
    """Show each layer: the change of its matrices in bytes from -127 to 127 for -peak to peak, its rates and gates."""
    return [_layer_view(layer) for layer in moment.layers]


def answer_view(answer: Answer) -> dict[str, Any]:
    """Show the probabilities."""
    return {
        "on": [round(each, _DIGITS) for each in answer.on],
        "off": [round(each, _DIGITS) for each in answer.off],
    }


def _layer_view(layer: Layer) -> dict[str, Any]:
    peak = _peak(layer.change)
    scaled = layer.change * (127 / peak) if peak else layer.change
    return {
        "peak": peak,
        "change": base64.b64encode(scaled.round().clamp(-127, 127).char().contiguous().numpy().tobytes()).decode(),
        "rates": _rows(layer.rates, _DIGITS),
        "forget": _rows(layer.forget, _DIGITS + 2),
    }


def _peak(change: Float[Tensor, "h d m"]) -> float:
    return float(change.abs().max())


def _rows(numbers: Float[Tensor, "h n"] | None, digits: int) -> list[list[float]] | None:
    return None if numbers is None else [[round(each, digits) for each in row] for row in numbers.tolist()]
