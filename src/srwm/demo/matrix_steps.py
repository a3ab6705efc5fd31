"""What a step does to the self-referential matrices of a model, for a page that shows them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from srwm.inspect import last_steps
from srwm.nn import FastStep, SelfReferentialLinear, SequenceModel, named_tensors


class MatrixStep(NamedTuple):
    """What one step did to one self-referential layer."""

    change: Float[Tensor, "h d m"]
    """How far its matrices are from their initial values after the step."""
    rates: Float[Tensor, "h r"] | None
    """The learning rates of the step, 4 or 1 for each head; None if nothing has been seen yet."""
    kept: Float[Tensor, "h g"] | None
    """The share of its change that each forget gate kept; None without gates, or if nothing has been seen yet."""


class MatrixWatcher:
    """A model with its self-referential layers.

    Attributes:
        matrices: these layers, first to last.
    """

    def __init__(self, sequence: SequenceModel) -> None:
        self._sequence = sequence
        self.matrices = [part for part in sequence.modules() if isinstance(part, SelfReferentialLinear)]
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
        with last_steps(self._sequence) as steps:
            yield lambda: tuple(map(_matrix_step, self.matrices, steps.values()))

    def state_bytes(self) -> int:
        """How much memory what was learnt takes, about."""
        return sum(tensor.nbytes for _, tensor in named_tensors(self._sequence.initial_state(1)))


def _matrix_step(matrix: SelfReferentialLinear, step: FastStep) -> MatrixStep:
    return MatrixStep(step.change[0], step.beta[0], 1 - step.forget[0] if matrix.forget_gates else None)
