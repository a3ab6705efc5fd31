"""A model at work on one image at a time, with a look at what its self-referential matrices do to themselves."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from srwm.errors import RunError
from srwm.fewshot import FewShotModel
from srwm.nn import SelfReferentialLinear, SelfReferentialState, SequenceState
from srwm.nn._feature_maps import activate_input
from srwm.nn._periodic import periodic_reset


class Layer(NamedTuple):
    """What one step did to one self-referential layer."""

    change: Float[Tensor, "h d m"]
    """How far its matrices are from their initial values after the step."""
    rates: Float[Tensor, "h r"] | None
    """The learning rates of the step, 4 or 1 for each head; None if nothing has been learnt yet."""


class Moment(NamedTuple):
    """A model after some examples."""

    state: SequenceState | None
    layers: tuple[Layer, ...]


class Answer(NamedTuple):
    """What a model says about a drawing."""

    on: list[float]
    """Probabilities of the classes, from what it has learnt."""
    off: list[float]
    """The same with self-modification turned off: from the initial weights."""


class Learner:
    """A model with its self-referential layers.

    Attributes:
        model: the model, in evaluation mode.
        matrices: its self-referential layers, first to last.
        start: the moment before anything was learnt.
    """

    def __init__(self, model: FewShotModel) -> None:
        self.model = model.eval()
        self.matrices = [part for part in model.sequence.modules() if isinstance(part, SelfReferentialLinear)]
        for matrix in self.matrices:
            # One step at a time, the plain one is as fast as the compiled ones, and nothing has to be compiled first.
            matrix.backend = "reference"
        self.start = Moment(None, tuple(Layer(torch.zeros_like(m.weight.detach()), None) for m in self.matrices))

    @torch.no_grad()
    def features(self, image: UInt8[ndarray, "c h w"]) -> Float[Tensor, "f"]:
        """Turn an image into features, always one alone: so equal images have equal features."""
        return self.model.features(torch.from_numpy(image).float()[None, None] / 255)[0, 0]

    @torch.no_grad()
    def step(self, features: Float[Tensor, "f"], label: int | None, before: Moment) -> Moment:
        """Read one image, with its label or without one, and modify the matrices.

        Raises:
            RunError: if a matrix is no longer finite.
        """
        batch = features[None, None]
        if label is None:
            inputs = self.model._without_labels(batch)
        else:
            inputs = self.model._with_labels(batch, torch.tensor([[label]]))
        with _watching(self.matrices) as layers:
            state = self.model.sequence(inputs, before.state)[1]
        if not all(math.isfinite(float(layer.change.abs().sum())) for layer in layers):
            raise RunError("the matrices have grown beyond all numbers; reset, or forget an example")
        return Moment(state, tuple(layers))

    @torch.no_grad()
    def answer(self, features: Float[Tensor, "f"], moment: Moment) -> Answer:
        """Say what an image shows; nothing is learnt from it."""
        inputs = self.model._without_labels(features[None, None])
        on, off = (
            self.model.sequence.read(inputs, state)[0, 0].softmax(dim=-1).tolist() for state in (moment.state, None)
        )
        return Answer(on, off)

    def moment_bytes(self) -> int:
        """How much memory a moment takes, about."""
        return 4 * sum(layer.change.numel() for layer in self.start.layers)


@contextmanager
def _watching(matrices: list[SelfReferentialLinear]) -> Iterator[list[Layer]]:
    """Collect what the layers do in the steps that are taken meanwhile."""
    seen: list[Layer] = []

    def watch(matrix: SelfReferentialLinear, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        x, before = args
        seen.append(Layer(out[1].change[0], _rates(matrix, x, before)))

    handles = [matrix.register_forward_hook(watch, with_kwargs=True) for matrix in matrices]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _rates(
    matrix: SelfReferentialLinear, x: Float[Tensor, "1 1 d"], before: SelfReferentialState | None
) -> Float[Tensor, "h r"]:
    """The learning rates that the matrices give themselves for one input (paper, Eqs. 5-6)."""
    weight = matrix.weight[..., -matrix.learning_rates :]
    if before is not None:
        if matrix.reset_every is not None:
            is_first, _ = periodic_reset(before.steps, 1, None, matrix.reset_every)
            before = before.reset(is_first[:, 0])
        weight = weight + before.change[0, ..., -matrix.learning_rates :]
    heads = activate_input(x[0, 0].unflatten(-1, (matrix.num_heads, matrix.head_dim)), matrix.input_activation)
    return torch.einsum("hd,hdr->hr", heads, weight).sigmoid()
