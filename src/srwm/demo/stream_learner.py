"""A model of streams at work, with a look at what its self-referential matrices do to themselves."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from srwm.nn import SelfReferentialLinear, SelfReferentialState, SequenceState, named_tensors
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
    def watching(self) -> Iterator[dict[SelfReferentialLinear, MatrixStep]]:
        """Fill a dictionary with what the last step in this block did to each layer; answers stay the same."""
        seen: dict[SelfReferentialLinear, MatrixStep] = {}

        def look(matrix: nn.Module, args: Any, kwargs: Any, output: tuple[Tensor, SelfReferentialState]) -> None:
            assert isinstance(matrix, SelfReferentialLinear)
            seen[matrix] = _matrix_step(matrix, *args, **kwargs, after=output[1])

        handles = [matrix.register_forward_hook(look, with_kwargs=True) for matrix in self.matrices]
        try:
            yield seen
        finally:
            for handle in handles:
                handle.remove()

    def state_bytes(self) -> int:
        """How much memory what was learnt takes, about."""
        return sum(tensor.nbytes for _, tensor in named_tensors(self.model.initial_state(1)))


def learnt_norm(state: SequenceState | None) -> float:
    """Euclidean norm of all that the layers have changed in themselves; without the features of the last image."""
    layers = () if state is None else tuple(each for each in state.layers if not isinstance(each, LastImage))
    tensors = [tensor for _, tensor in named_tensors(layers) if tensor.is_floating_point()]
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


@torch.no_grad()
def _matrix_step(
    matrix: SelfReferentialLinear,
    x: Float[Tensor, "1 1 d_in"],
    state: SelfReferentialState | None = None,
    *,
    reset: Tensor | None = None,
    after: SelfReferentialState,
) -> MatrixStep:
    """Compute the rates and the gates of one step of one stream again."""
    assert x.shape[:2] == (1, 1)
    assert reset is None
    weight: Tensor = matrix.weight
    if state is not None:
        is_new = matrix.reset_every is not None and int(state.steps) > 0 and int(state.steps) % matrix.reset_every == 0
        weight = weight if is_new else weight + state.change[0]
    heads = x[0, 0].unflatten(-1, (matrix.num_heads, matrix.head_dim))
    if matrix.input_activation == "softmax":
        heads = heads.softmax(dim=-1)
    first = sum(matrix.columns[:3])
    rates, *gates = torch.einsum("hd,hdm->hm", heads, weight[..., first:]).split(matrix.columns[3:], dim=-1)
    return MatrixStep(after.change[0], rates.sigmoid(), _kept(matrix, gates[0]) if gates else None)


def _kept(matrix: SelfReferentialLinear, gates: Float[Tensor, "h g"]) -> Float[Tensor, "h g"]:
    share = (gates + matrix.forget_bias).sigmoid()
    return 1 - (matrix.forget_min + (matrix.forget_max - matrix.forget_min) * share)
