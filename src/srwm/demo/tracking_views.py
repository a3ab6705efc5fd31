"""What the page is told of networks that track a state, as JSON values."""

from typing import Any

from .tracking_learner import TrackingLearner
from .tracking_session import MAX_SYMBOLS, Read, TrackingSession
from .views import DIGITS, layer_view, layers_view


def tracking_model_view(learner: TrackingLearner) -> dict[str, Any]:
    """Say what is asked, of which networks, and the limits of what may be asked."""
    language = learner.language
    return {
        "title": language.title,
        "symbols": list(language.symbols),
        "answers": list(language.answers),
        "trained_length": learner.trained_length,
        "networks": [
            {
                "name": tracker.name,
                "title": tracker.title,
                "parameters": sum(parameter.numel() for parameter in tracker.model.parameters()),
                "layers": [layer_view(matrix) for matrix in tracker.matrices],
            }
            for tracker in learner.trackers
        ],
        "limits": {"symbols": MAX_SYMBOLS},
    }


def tracking_view(session: TrackingSession) -> dict[str, Any]:
    """Say what was read so far, and how the networks answered."""
    moment = session.moment
    return {
        "steps": session.steps,
        "truth": moment.truth,
        "shown": [_read_view(each) for each in session.shown],
        "right": list(moment.right),
        "first_errors": list(moment.first_errors),
        "bins": {"width": moment.bins.width, "list": [list(each) for each in moment.bins.stretches]},
        "layers": [
            layers_view(tracker, steps) for tracker, steps in zip(session.learner.trackers, session.layers, strict=True)
        ],
    }


def _read_view(read: Read) -> dict[str, Any]:
    return {
        "place": read.place,
        "symbol": read.symbol,
        "truth": read.truth,
        "answers": list(read.answers),
        "probabilities": [[round(each, DIGITS) for each in row] for row in read.probabilities],
    }
