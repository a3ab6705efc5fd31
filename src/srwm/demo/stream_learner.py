"""A model of streams at work, with a look at what its self-referential matrices do to themselves."""

import math

from srwm.nn import SequenceState, named_tensors
from srwm.sequential import StreamModel
from srwm.supervised.last_image import LastImage

from .matrix_steps import MatrixWatcher


class StreamLearner(MatrixWatcher):
    """A model of streams with its self-referential layers.

    Attributes:
        model: the model, in evaluation mode.
    """

    def __init__(self, model: StreamModel) -> None:
        super().__init__(model.sequence)
        self.model = model.eval()

    def state_bytes(self) -> int:
        """How much memory what was learnt takes, about."""
        return sum(tensor.nbytes for _, tensor in named_tensors(self.model.initial_state(1)))


def learnt_norm(state: SequenceState | None) -> float:
    """Euclidean norm of all that the layers have changed in themselves; without the features of the last image."""
    layers = () if state is None else tuple(each for each in state.layers if not isinstance(each, LastImage))
    tensors = [tensor for _, tensor in named_tensors(layers) if tensor.is_floating_point()]
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))
