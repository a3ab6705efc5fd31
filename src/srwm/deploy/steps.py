"""One step of each kind of model as a function of tensors: what goes in, what comes out, and the state between.

A step knows nothing of files or formats. It computes by the model's own methods, on a copy of the model, so that the
model that it was made of stays as it is.
"""

import copy
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from srwm.fewshot import FewShotModel
from srwm.nn import SequenceModel, SequenceState
from srwm.rl.agent import Agent
from srwm.rl.procgen import ACTIONS, FRAME_SHAPE, NUM_ACTIONS
from srwm.sequential import StreamModel

from .slots import Named, Slot, StateSlots

__all__ = [
    "AgentStep",
    "Exported",
    "FewShotStep",
    "Outcome",
    "SourcedStreamStep",
    "Step",
    "StreamStep",
    "SymbolModel",
    "SymbolStep",
    "needs_source",
    "step_of",
]

_Model = TypeVar("_Model")
Outcome = tuple[Tensor | Named, ...]
"""What comes out of a step: `*answers, state`."""
_PIXELS = "pixels, 0 to 255, [channels, height, width]"


class Step(nn.Module):
    """A step of a model: `*answers, state = step(*inputs, state)`, the state a dictionary of tensors.

    Args:
        slots: of the state.
        inputs: what goes in beside the state, in order.
        outputs: what comes out beside the state, in order.
        about: a few sentences on what a step does.
        facts: what else a user has to know, as JSON values.

    Attributes:
        inputs: as above.
        outputs: as above.
        state: the tensors of the state.
        about: as above.
        facts: as above.
    """

    def __init__(
        self, slots: StateSlots, inputs: Sequence[Slot], outputs: Sequence[Slot], about: str, facts: dict[str, Any]
    ) -> None:
        super().__init__()
        self.slots = slots
        self.inputs, self.outputs, self.state = tuple(inputs), tuple(outputs), slots.slots
        self.about, self.facts = about, facts

    def initial_state(self, batch_size: int) -> Named:
        """Return the state of a new episode: zeros."""
        return {slot.name: slot.zeros(batch_size) for slot in self.state}

    def examples(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Draw inputs, with which the step can be tried."""
        raise NotImplementedError


class FewShotStep(Step):
    """Answers an image from the state, and where there is a label, learns it."""

    def __init__(self, model: FewShotModel) -> None:
        model = _own(model)
        features, label = torch.zeros(1, 1, model.encoder.feature_size), torch.zeros(1, 1, dtype=torch.int64)
        with torch.no_grad():
            before = model.learn_features(features, label)
            after = model.learn_features(features, label, before)
        known = f"0 to {model.ways - 1}"
        negatives = "; it was trained on negatives, 255 - pixel" if model.config.task.invert else ""
        super().__init__(
            StateSlots(before, after),
            [
                Slot("image", torch.uint8, model.image_shape, _PIXELS + negatives),
                Slot("label", torch.int64, (), f"what the image shows, {known}; -1 to ask only"),
            ],
            [Slot("probabilities", torch.float32, (model.ways,), "of the classes, by what the state knew before")],
            "It says what an image shows, by what the state knows. Then, where there is a label, the state learns it; "
            "where the label is -1, the state stays as it is. To ask about several images at once, repeat the rows of "
            "the state.",
            {
                "image": {"shape": list(model.image_shape), "normalisation": "inside the model: pixel / 255"},
                "labels": {"classes": model.ways, "known": known, "none": -1},
            },
        )
        self.model = model

    def forward(self, image: Tensor, label: Tensor, state: Named) -> Outcome:
        """Answer, then learn."""
        old = self.slots.state(state, image.shape[0])
        features = self.model.features(image[:, None].float() / 255)
        scores = self.model.read_features(features, old)[:, 0]
        new = self.slots.named(self.model.learn_features(features, label.clamp(min=0)[:, None], old))
        asks = label < 0
        kept = {name: torch.where(_beside(asks, rows), rows, new[name]) for name, rows in state.items()}
        return scores.softmax(dim=-1), kept

    def examples(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Draw images, some with labels."""
        image = _random_image(self.inputs[0], batch_size, generator)
        return image, torch.randint(-1, self.model.ways, (batch_size,), generator=generator)


class StreamStep(Step):
    """Takes the next image of a stream with the label of the one before, and says what it shows."""

    def __init__(self, model: StreamModel, more_inputs: Sequence[Slot] = ()) -> None:
        model = _own(model)
        image, label = torch.zeros(1, 1, *model.image_shape), torch.zeros(1, 1, dtype=torch.int64)
        with torch.no_grad():
            before = model(image, label)[1]
            after = model(image, label, before)[1]
        known = f"0 to {model.ways - 1}"
        scales = zip(model.source_names, model.mean.tolist(), model.std.tolist(), strict=True)
        super().__init__(
            StateSlots(before, after),
            [
                Slot("image", torch.uint8, model.image_shape, _PIXELS),
                Slot("previous_label", torch.int64, (), f"what the image before showed, {known}; -1 if not known"),
                *more_inputs,
            ],
            [Slot("probabilities", torch.float32, (model.ways,), "of the classes")],
            "It learns the label of the image before, and says what this image shows.",
            {
                "image": {
                    "shape": list(model.image_shape),
                    "normalisation": "inside the model: (pixel / 255 - mean) / std",
                    "sources": [{"name": name, "mean": mean, "std": std} for name, mean, std in scales],
                },
                "labels": {"classes": model.ways, "known": known, "none": -1},
            },
        )
        self.model = model

    def forward(self, image: Tensor, previous_label: Tensor, state: Named) -> Outcome:
        """Answer and learn; every source has the scale of the first."""
        return self.observe(image, previous_label, torch.zeros_like(previous_label), state)

    def observe(self, image: Tensor, label: Tensor, source: Tensor, state: Named) -> Outcome:
        """Answer and learn."""
        images = self.model.normalise(image, source)[:, None]
        scores, new = self.model(images, label[:, None], self.slots.state(state, image.shape[0]))
        return scores[:, 0].softmax(dim=-1), self.slots.named(new)

    def examples(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Draw images and labels, some unknown."""
        image = _random_image(self.inputs[0], batch_size, generator)
        return image, torch.randint(-1, self.model.ways, (batch_size,), generator=generator)


class SourcedStreamStep(StreamStep):
    """The step of a model that brings the pixels of each source to one scale, and has to know the source."""

    def __init__(self, model: StreamModel) -> None:
        names = ", ".join(f"{number} {name}" for number, name in enumerate(model.source_names))
        super().__init__(model, [Slot("source", torch.int64, (), f"which source the image is like: {names}")])

    def forward(  # type: ignore[override]  # one input more
        self, image: Tensor, previous_label: Tensor, source: Tensor, state: Named
    ) -> Outcome:
        """Answer and learn."""
        return self.observe(image, previous_label, source, state)

    def examples(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Draw images, labels and sources."""
        source = torch.randint(len(self.model.source_names), (batch_size,), generator=generator)
        return *super().examples(batch_size, generator), source


@runtime_checkable
class SymbolModel(Protocol):
    """A model that reads a sequence of symbols, and answers at every place, such as those of languages."""

    symbols: tuple[str, ...]
    """What the symbols 0, 1, ... are called."""
    num_classes: int
    """Answers to choose from."""
    sequence: SequenceModel
    """What follows the state."""

    def __call__(self, symbols: Tensor, state: SequenceState | None = None) -> tuple[Tensor, SequenceState]:
        """Read symbols [b, t]; give scores [b, t, classes], and the state to go on with."""
        ...


class SymbolStep(Step):
    """Reads the next symbol of a sequence, and answers."""

    def __init__(self, model: SymbolModel) -> None:
        model = _own(model)
        symbol = torch.zeros(1, 1, dtype=torch.int64)
        with torch.no_grad():
            before = model(symbol)[1]
            after = model(symbol, before)[1]
        super().__init__(
            StateSlots(before, after),
            [Slot("symbol", torch.int64, (), f"what comes next in the sequence, 0 to {len(model.symbols) - 1}")],
            [Slot("probabilities", torch.float32, (model.num_classes,), "of the answers at this place")],
            "It reads the next symbol of a sequence, and answers.",
            {"symbols": list(model.symbols), "answers": model.num_classes},
        )
        self.model = model

    def forward(self, symbol: Tensor, state: Named) -> Outcome:
        """Read and answer."""
        scores, new = self.model(symbol[:, None], self.slots.state(state, symbol.shape[0]))
        return scores[:, 0].softmax(dim=-1), self.slots.named(new)

    def examples(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Draw symbols."""
        return (torch.randint(len(self.model.symbols), (batch_size,), generator=generator),)


class AgentStep(Step):
    """Policy and value for a frame and the reward that came with it."""

    def __init__(self, agent: Agent) -> None:
        agent = _own(agent)
        frames, first = torch.zeros(1, 1, *FRAME_SHAPE, dtype=torch.uint8), torch.zeros(1, 1, dtype=torch.bool)
        with torch.no_grad():
            before = agent(frames, torch.zeros(1, 1), first)[1]
            after = agent(frames, torch.zeros(1, 1), first, before)[1]
        super().__init__(
            StateSlots(before, after),
            [
                Slot("frame", torch.uint8, FRAME_SHAPE, "pixels, 0 to 255, [height, width, channels]"),
                Slot("reward", torch.float32, (), "what came with the frame; the agent clamps it to [-1, 1]"),
                Slot("first", torch.bool, (), "whether an episode begins: the state is then reset before the step"),
            ],
            [
                Slot("logits", torch.float32, (NUM_ACTIONS,), "unnormalised log-probabilities of the actions"),
                Slot("value", torch.float32, (), "the return that the agent expects"),
            ],
            "It says what to do after a frame of a game.",
            {
                "image": {"shape": list(FRAME_SHAPE), "normalisation": "inside the model: pixel / 255"},
                "actions": list(ACTIONS),
            },
        )
        self.model = agent

    def forward(self, frame: Tensor, reward: Tensor, first: Tensor, state: Named) -> Outcome:
        """Compute policy and value."""
        old = self.slots.state(state, frame.shape[0])
        output, new = self.model(frame[:, None], reward[:, None], first[:, None], old)
        return output.logits[:, 0], output.values[:, 0], self.slots.named(new)

    def examples(self, batch_size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Draw frames and rewards, some at the start of an episode."""
        frame = _random_image(self.inputs[0], batch_size, generator)
        reward = torch.randn(batch_size, generator=generator)
        return frame, reward, torch.rand(batch_size, generator=generator) < 0.3


Exported = FewShotModel | StreamModel | Agent | SymbolModel
"""Models that have a step."""


def step_of(model: Exported) -> Step:
    """Make the step of a model; the model stays as it is.

    Example:
        >>> from srwm.rl.config import AgentConfig
        >>> step = step_of(Agent(AgentConfig()))
        >>> frame, reward, first = step.examples(2, torch.Generator())
        >>> logits, value, state = step(frame, reward, first, step.initial_state(2))
        >>> list(state)
        ['state.0.change', 'state.1.change']
    """
    if isinstance(model, FewShotModel):
        return FewShotStep(model)
    if isinstance(model, Agent):
        return AgentStep(model)
    if isinstance(model, SymbolModel):
        return SymbolStep(model)
    return SourcedStreamStep(model) if needs_source(model) else StreamStep(model)


def needs_source(model: StreamModel) -> bool:
    """Whether a model scales each source by itself, so that it must be told of which one an image is."""
    return not all(bool((rows == rows[:1]).all()) for rows in (model.mean, model.std))


def _own(model: _Model) -> _Model:
    """A copy that answers and does not train, in the one dtype and on the one device that files are written for."""
    own = copy.deepcopy(model)
    assert isinstance(own, nn.Module)
    own.to("cpu", torch.float32).eval().requires_grad_(False)
    return own


def _beside(rows: Tensor, like: Tensor) -> Tensor:
    """Give [b] as many axes as another tensor has."""
    return rows.reshape(-1, *[1] * (like.dim() - 1))


def _random_image(slot: Slot, batch_size: int, generator: torch.Generator) -> Tensor:
    return torch.randint(256, (batch_size, *slot.shape), dtype=slot.dtype, generator=generator)
