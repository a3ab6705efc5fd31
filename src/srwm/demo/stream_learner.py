"""A model of streams at work, with a look at what its self-referential matrices do to themselves."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from srwm.inspect import last_steps
from srwm.nn import FastStep, SelfReferentialLinear, SequenceState, named_tensors
from srwm.sequential import StreamModel
from srwm.supervised.last_image import LastImage


class MatrixStep(NamedTuple):
    """What one step did to one self-referential layer."""

    change: Float[Tensor, "h d m"]
    """How far its matrices are from their initial values after the step."""
    rates: Float[Tensor, "h r"] | None
    """The learning rates of the step, 4 or 1 for each head; None if nothing has been seen yet."""
    kept: Float[Tensor, "h g"] | None
    """The share of its change that each forget gate kept; None without gates, or if nothing has been seen yet."""


class StreamLearner:
    """A model of streams with its self-referential layers.

    Attributes:
        model: the model, in evaluation mode.
        matrices: its self-referential layers, first to last.
    """

    def __init__(self, model: StreamModel) -> None:
        self.model = model.eval()
        self.matrices = [part for part in model.sequence.modules() if isinstance(part, SelfReferentialLinear)]
        for matrix in self.matrices:
            # One step at a time, the plain one is as fast as the compiled ones, and nothing has to be compiled first.
            matrix.backend = "reference"

    @property
    def start(self) -> tuple[MatrixStep, ...]:
        """The layers before anything was seen."""
        return tuple(MatrixStep(torch.zeros_like(each.weight.detach()), None, None) for each in self.matrices)

    @contextmanager
    def watching(self) -> Iterator[Callable[[], tuple[MatrixStep, ...]]]:
        """Give a function that says what the last step in this block did to each layer; answers stay the same."""
        with last_steps(self.model.sequence) as steps:
            yield lambda: tuple(map(_matrix_step, self.matrices, steps.values()))

    def state_bytes(self) -> int:
        """How much memory what was learnt takes, about."""
        return sum(tensor.nbytes for _, tensor in named_tensors(self.model.initial_state(1)))


def learnt_norm(state: SequenceState | None) -> float:
    """Euclidean norm of all that the layers have changed in themselves; without the features of the last image."""
    layers = () if state is None else tuple(each for each in state.layers if not isinstance(each, LastImage))
    tensors = [tensor for _, tensor in named_tensors(layers) if tensor.is_floating_point()]
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


def _matrix_step(matrix: SelfReferentialLinear, step: FastStep) -> MatrixStep:
    return MatrixStep(step.change[0], step.beta[0], 1 - step.forget[0] if matrix.forget_gates else None)
