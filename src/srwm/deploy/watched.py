"""Steps that can be watched: beside the answer and the state, what each self-referential matrix did to itself."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from srwm.fewshot import FewShotModel
from srwm.inspect import find_matrices, last_steps
from srwm.nn import FastMatrix, FastStep
from srwm.sequential import StreamModel

from .slots import Named, Slot
from .steps import FewShotStep, Outcome, SourcedStreamStep, Step, StreamStep, SymbolModel, SymbolStep, needs_source

__all__ = ["watched_step_of"]

_Model = FewShotModel | StreamModel | SymbolModel


class WatchedFewShotStep(FewShotStep):
    """Answers an image from the state, and steps over it with its label, or with the word for "not known"."""

    def __init__(self, model: FewShotModel) -> None:
        super().__init__(model)
        unmodified = "of the classes, by the initial weights: with self-modification turned off"
        self.outputs = (
            *self.outputs,
            Slot("unmodified_probabilities", torch.float32, (model.ways,), unmodified),
            *_watched_slots(self.model),
        )
        self.about = (
            "It says what an image shows, by what the state knows. Then it steps over the image with its label or, "
            "where the label is -1, with the word for a label that is not known: the state that comes out is always "
            "a step on, and whoever only asks goes on with the one that went in."
        )

    def forward(self, image: Tensor, label: Tensor, state: Named) -> Outcome:
        """Answer with and without what was learnt, then step on."""
        old = self.slots.state(state, image.shape[0])
        features = self.model.features(image[:, None].float() / 255)
        scores, unmodified = (self.model.read_features(features, each)[:, 0] for each in (old, None))
        not_known = 0 if self.model.config.model.label_slot == "class_zero" else self.model.ways
        inputs = self.model.inputs(features, torch.where(label < 0, not_known, label)[:, None])
        with last_steps(self.model.sequence) as steps:
            new = self.model.sequence(inputs, old)[1]
        answers = scores.softmax(dim=-1), unmodified.softmax(dim=-1)
        return *answers, *_watched(self.model, steps), self.slots.named(new)


class _WatchedStream(StreamStep):
    def __init__(self, model: StreamModel) -> None:
        super().__init__(model)
        self.outputs = (*self.outputs, *_watched_slots(self.model))

    def observe(self, image: Tensor, label: Tensor, source: Tensor, state: Named) -> Outcome:
        with last_steps(self.model.sequence) as steps:
            *answers, new = super().observe(image, label, source, state)
        return *answers, *_watched(self.model, steps), new


class WatchedStreamStep(_WatchedStream):
    """The step of a model of streams, watched."""


class WatchedSourcedStreamStep(_WatchedStream, SourcedStreamStep):
    """The same for one that has to know the source."""


class WatchedSymbolStep(SymbolStep):
    """The step of a model that reads symbols, watched."""

    def __init__(self, model: SymbolModel) -> None:
        super().__init__(model)
        self.outputs = (*self.outputs, *_watched_slots(self.model))

    def forward(self, symbol: Tensor, state: Named) -> Outcome:
        """Read and answer."""
        with last_steps(self.model.sequence) as steps:
            *answers, new = super().forward(symbol, state)
        return *answers, *_watched(self.model, steps), new


def watched_step_of(model: _Model) -> Step:
    """Make the step of a model with more outputs, for a page that shows what the model does to itself.

    For the self-referential matrix number i, from 0, they are `change.i`, how far it is from its initial value after
    the step, `rates.i`, its learning rates and, where it has forget gates, `kept.i`, the share of its change that each
    gate kept. A few-shot model also answers by its initial weights.
    """
    if isinstance(model, FewShotModel):
        return WatchedFewShotStep(model)
    if isinstance(model, SymbolModel):
        return WatchedSymbolStep(model)
    return WatchedSourcedStreamStep(model) if needs_source(model) else WatchedStreamStep(model)


def _matrices(model: _Model) -> list[FastMatrix]:
    return [each for each in find_matrices(model.sequence) if each.kind == "self_referential"]


def _watched_slots(model: _Model) -> Sequence[Slot]:
    slots = []
    for i, each in enumerate(_matrices(model)):
        heads = each.num_heads
        change = (heads, each.head_dim, each.width)
        slots += [
            Slot(f"change.{i}", torch.float32, change, f"of matrix {i} since the start of the state"),
            Slot(f"rates.{i}", torch.float32, (heads, each.learning_rates), f"learning rates of matrix {i}"),
        ]
        if each.forget_gates:
            kept = f"share of its change that each forget gate of matrix {i} kept"
            slots.append(Slot(f"kept.{i}", torch.float32, (heads, each.forget_gates), kept))
    return slots


def _watched(model: _Model, steps: Mapping[str, FastStep]) -> list[Tensor]:
    """What `_watched_slots` names."""
    seen: list[Tensor] = []
    for each in _matrices(model):
        step = steps[each.name]
        # A copy: two outputs of a graph must not be one tensor.
        seen += [step.change.clone(), step.beta, *([1 - step.forget] if each.forget_gates else [])]
    return seen
