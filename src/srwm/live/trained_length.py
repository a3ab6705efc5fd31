"""How long a stream a model was trained for, and whether one that is far longer may be too long for it."""

import math

from srwm.nn import SelfReferentialLinear

from .model import LiveModel

FAR_LONGER = 4
"""So many times the training's streams is far longer than they were."""


def may_grow(model: LiveModel) -> bool:
    """Whether a matrix of the model changes itself and nothing makes it forget."""
    return any(
        isinstance(part, SelfReferentialLinear) and not part.forget_gates and part.reset_every is None
        for part in model.modules()
    )


def far_longer(model: LiveModel) -> int | None:
    """The first step of a stream that is far longer than those of the training; None where length does no harm."""
    most = FAR_LONGER * model.trained_length
    return math.floor(most) + 1 if may_grow(model) and math.isfinite(most) else None


def warning_of(model: LiveModel) -> str:
    """What there is to say at that step."""
    return (
        f"the stream has come to more than {FAR_LONGER} times the length that the model was trained for "
        f"({model.trained_length:,.0f} steps), and nothing bounds what it changes in itself: its answers may "
        "get worse until it knows nothing; train a gated recipe (as sequential-strokes-gated), or set a bound with "
        "--max-norm"
    )
