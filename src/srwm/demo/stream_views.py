"""What the page is told of a stream, as JSON values."""

from collections.abc import Sequence
from typing import Any

from srwm.data.sources import SOURCES
from srwm.sequential.bank import INVERTED

from .requests import encode_pixels
from .stream_history import RECENT, RUNNING, Shown
from .stream_learner import StreamLearner
from .stream_session import MAX_STEPS, StreamSession
from .tasks import MAX_SEED, TASK_LENGTHS
from .views import DIGITS, layer_view, layers_view

_SIGNIFICANT = 5
"""Digits of a norm, which may be of any size."""


def stream_model_view(name: str, learner: StreamLearner) -> dict[str, Any]:
    """Say what lives the stream: the model, its matrices, and the limits of what may be asked."""
    model = learner.model
    channels, size, _ = model.image_shape
    return {
        "name": name,
        "sources": _titles(model.source_names),
        "ways": model.ways,
        "channels": channels,
        "image_size": size,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "layers": [layer_view(matrix) for matrix in learner.matrices],
        "task_lengths": list(TASK_LENGTHS),
        "running": RUNNING,
        "recent": RECENT,
        "limits": {"steps": MAX_STEPS, "seed": MAX_SEED},
    }


def stream_view(session: StreamSession) -> dict[str, Any]:
    """Say what became of a stream so far."""
    history = session.history
    return {
        "seed": session.seed,
        "task_length": session.task_length,
        "task": session.task,
        "place": session.place,
        "steps": history.steps,
        "right": history.right,
        "running": list(history.running),
        "recent": [[each.task, int(each.is_right)] for each in history.recent],
        "shown": [_shown_view(each) for each in history.shown],
        "instances": history.instances,
        "bins": {
            "width": history.bin_width,
            "list": [[each.images, each.right, _rounded(each.norm)] for each in history.bins],
        },
        "norm": _rounded(session.norm),
        "is_dead": session.is_dead,
        "layers": layers_view(session.learner, session.layers),
    }


def _shown_view(shown: Shown) -> dict[str, Any]:
    return {
        **shown.lived._asdict(),
        "probabilities": [round(each, DIGITS) for each in shown.probabilities],
        "pixels": encode_pixels(shown.image.numpy()),
        "is_inverted": shown.is_inverted,
    }


def _titles(sources: Sequence[str]) -> list[str]:
    """What a sentence calls the sources."""
    plain = [source.removesuffix(INVERTED) for source in sources]
    titles = [SOURCES[name].title if name in SOURCES else name for name in plain]
    # "Strokes and its negatives"
    return [
        title if source == name else f"{'its' if name in plain[:i] else title} negatives"
        for i, (source, name, title) in enumerate(zip(sources, plain, titles, strict=True))
    ]


def _rounded(number: float) -> float:
    return float(f"{number:.{_SIGNIFICANT}g}")
