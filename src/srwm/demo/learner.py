"""A model at work on one image at a time, with a look at what its self-referential matrices do to themselves."""

from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from numpy import ndarray
from torch import Tensor

from srwm.errors import RunError
from srwm.fewshot import FewShotModel
from srwm.inspect import Recorder
from srwm.nn import SelfReferentialLinear, SequenceState


class Layer(NamedTuple):
    """What one step did to one self-referential layer."""

    change: Float[Tensor, "h d m"]
    """How far its matrices are from their initial values after the step."""
    rates: Float[Tensor, "h r"] | None
    """The learning rates of the step, 4 or 1 for each head; None if nothing has been learnt yet."""
    kept: Float[Tensor, "h g"] | None
    """The share of its change that each forget gate of each head kept at the step; None also if there are no gates."""


class Moment(NamedTuple):
    """A model after some examples."""

    state: SequenceState | None
    layers: tuple[Layer, ...]


class DrawingAnswer(NamedTuple):
    """What a model says about a drawing."""

    on: list[float]
    """Probabilities of the classes, from what it has learnt."""
    off: list[float]
    """The same with self-modification turned off: from the initial weights."""


class DrawingLearner:
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
        self.start = Moment(None, tuple(Layer(torch.zeros_like(m.weight.detach()), None, None) for m in self.matrices))

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
        inputs = self.model.inputs(features[None, None], None if label is None else torch.tensor([[label]]))
        if not self.matrices:
            return Moment(self.model.sequence(inputs, before.state)[1], ())
        with Recorder(self.model.sequence) as recorder:
            state = self.model.sequence(inputs, before.state)[1]
        records = [record for record in recorder.finish() if record.kind == "self_referential"]
        try:
            return Moment(
                state,
                tuple(
                    Layer(each.changes()[0, 0], each.beta[0, 0], 1 - each.forget[0, 0] if each.forget_gates else None)
                    for each in records
                ),
            )
        except RunError:
            sentence = "the matrices have grown beyond all numbers; reset, or forget an example"
            raise RunError(sentence) from None

    @torch.no_grad()
    def answer(self, features: Float[Tensor, "f"], moment: Moment) -> DrawingAnswer:
        """Say what an image shows; nothing is learnt from it."""
        on, off = (
            self.model.read_features(features[None, None], state)[0, 0].softmax(dim=-1).tolist()
            for state in (moment.state, None)
        )
        return DrawingAnswer(on, off)

    def moment_bytes(self) -> int:
        """How much memory a moment takes, about: each matrix is there twice, in the state and to be looked at."""
        return 8 * sum(layer.change.numel() for layer in self.start.layers)
