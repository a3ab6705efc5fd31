"""What a model does to its own weights while it runs: recorded, measured, attributed and drawn.

    with Recorder(model) as recorder:
        model(x)
    inspection = recorder.finish()
    inspection[0].beta          # learning rates of the first layer [row, step, head, 4]
    inspection[0].effective_rank
    attribute(inspection[0])    # which past steps each output rests on

`srwm.inspect.plots` and `srwm.inspect.film` draw it, and `srwm inspect RUN` does all of it with a trained model.
"""

from ._sites import find_matrices
from .attribution import Attribution, attribute
from .gradients import answer_gradients
from .last_step import last_steps
from .record import Inspection, MatrixRecord
from .recorder import Recorder, inspect_call

__all__ = [
    "Attribution",
    "Inspection",
    "MatrixRecord",
    "Recorder",
    "answer_gradients",
    "attribute",
    "find_matrices",
    "inspect_call",
    "last_steps",
]
