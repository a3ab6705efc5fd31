"""A trained model at work: what it is shown, what it answers, and what it does to itself meanwhile.

Few-shot learning and streams have forms of their own (`srwm.fewshot.inspection`, `srwm.sequential.inspection`), with
images, answers and what each answer rests on; of any other experiment the test is recorded (`srwm.inspect.tested`).
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from srwm.errors import InputError

from .gradients import answer_gradients
from .record import Inspection
from .recorder import Recorder

RNG_STREAM = 0x1245
"""Keeps the random numbers of what is shown apart from those of training and testing."""

MOST_SHOWN = 10_000
"""Episodes, questions and shots that are shown at a time: all of them stand in memory."""

MOST_ANSWERS = 24
"""Of a row with an answer at each step, the last so many are looked into."""


@dataclass(frozen=True)
class InspectOptions:
    """What to show to a model, and what to record of it.

    An experiment with options of its own has a subclass, as its `inspect_options`: each further field is an option of
    `srwm inspect`, and the text under it its help.
    """

    split: Literal["train", "validation", "test"] = "test"
    """Which classes to draw."""
    episodes: int = 1
    """Episodes or streams."""
    seed: int = 0
    """Seed of the drawing."""
    device: str = "cpu"
    """Where to compute."""
    data: Path | None = None
    """The data folder."""
    recorder: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Options of `Recorder`: layers, heads, rows, every, matrices, max_bytes."""

    def __post_init__(self) -> None:
        self.check_counts("episodes")

    def check_counts(self, *names: str) -> None:
        """Refuse numbers of things that are none, or too many to be shown."""
        for name in names:
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST_SHOWN:
                raise InputError(f"{name}={value}; expected 1 to {MOST_SHOWN:,}")


class InspectedAnswer(NamedTuple):
    """What a model answered at a recorded step of a recorded row."""

    row: int
    """Place of the row in the record."""
    place: int
    """Place of the step in the record."""
    given: int
    """The label it gave."""
    wanted: int
    """The right one."""


@dataclass(frozen=True, eq=False)
class Inspected:
    """A model at work: what it was shown, what it answered, and what it did to itself."""

    title: str
    """What was shown."""
    inspection: Inspection
    """What was recorded."""
    images: UInt8[Tensor, "b t c height width"] | None = None
    """The image of each recorded row and step, if it was shown images."""
    words: tuple[tuple[str, ...], ...] | None = None
    """For each recorded row and step, what the model was told with the image."""
    told: str = ""
    """What these words are."""
    labels: tuple[str, ...] = ()
    """What each label is called."""
    correct: int | None = None
    """How many answers were correct, of all rows that ran."""
    asked: int | None = None
    """How many there were."""
    answers: tuple[InspectedAnswer, ...] = ()
    """The answers that were looked into."""
    gradients: Mapping[str, Float[Tensor, "n h e"]] = dataclasses.field(default_factory=dict)
    """For each layer and each of these answers, the direction in which the layer's output raises the margin: by how
    much the score of the answer exceeds the mean of the others. The heads are the recorded ones."""
    states: Int[Tensor, "b t"] | None = None
    """The number of the state that the task was in after each recorded step of each recorded row, which is its right
    answer, too; None where a task has no such thing."""
    spans: tuple[int, ...] = ()
    """The number of the task that each recorded step belongs to, -1 for none; empty where there are no tasks."""
    span_names: tuple[str, ...] = ()
    """What each of these tasks is called."""


def margin(scores: Float[Tensor, "b ways"]) -> Float[Tensor, "b"]:
    """By how much the largest score of each row exceeds the mean of the others; twice the score of a single class."""
    best = scores.amax(dim=-1)
    return best - (scores.sum(dim=-1) - best) / max(1, scores.shape[-1] - 1)


def features_of(model: Any, images: Tensor) -> Tensor:
    """The features of the images of each row, computed once and without a graph."""
    with torch.no_grad():
        features: Tensor = model.features(images)
    return features


def record_answers(
    model: nn.Module, options: InspectOptions, scores: Callable[[], Tensor]
) -> tuple[Inspection, Int[Tensor, "..."]]:
    """Record a model while it scores its answers; what was seen, and the labels that it gave."""
    with torch.no_grad(), Recorder(model, **options.recorder) as recorder:
        given = scores().argmax(dim=-1).cpu()
    return recorder.finish(), given


class LookedInto(NamedTuple):
    """Answers, and which way each lies; see `Inspected`."""

    answers: tuple[InspectedAnswer, ...] = ()
    gradients: Mapping[str, Tensor] = {}


def look_into_questions(
    model: nn.Module,
    inspection: Inspection,
    given: Int[Tensor, "b"],
    wanted: Int[Tensor, "b"],
    scores: Callable[[], Float[Tensor, "b ways"]],
    steps: int,
) -> LookedInto:
    """Look into the answer that each recorded row ends with, if its last of so many steps was recorded."""
    rows, last = inspection[0].rows, len(inspection[0].step) - 1
    if int(inspection[0].step[-1]) != steps:
        return LookedInto()
    found = answer_gradients(model, lambda: margin(scores()))
    return LookedInto(
        tuple(InspectedAnswer(at, last, int(given[row]), int(wanted[row])) for at, row in enumerate(rows)),
        {record.name: found[record.name][list(rows), -1][:, list(record.heads)] for record in inspection},
    )


def look_along_row(
    model: nn.Module,
    inspection: Inspection,
    given: Int[Tensor, "b t"],
    wanted: Int[Tensor, "b t"],
    scores: Callable[[int, int], Float[Tensor, "1 steps ways"]],
) -> LookedInto:
    """Look into the last answers of the first recorded row, one at each recorded step."""
    places, row = list(enumerate(inspection[0].step.tolist()))[-MOST_ANSWERS:], inspection[0].rows[0]
    gradients: dict[str, list[Tensor]] = {record.name: [] for record in inspection}
    for _, step in places:
        # Up to this step only: later ones cannot matter, and cost time.
        found = answer_gradients(model, functools.partial(_margin_at_end, scores, row, step))
        for record in inspection:
            gradients[record.name].append(found[record.name][0, step - 1, list(record.heads)])
    return LookedInto(
        tuple(
            InspectedAnswer(0, place, int(given[row, step - 1]), int(wanted[row, step - 1])) for place, step in places
        ),
        {name: torch.stack(each) for name, each in gradients.items()},
    )


def _margin_at_end(scores: Callable[[int, int], Tensor], row: int, steps: int) -> Tensor:
    return margin(scores(row, steps)[:, -1])


def make_inspected(
    title: str,
    inspection: Inspection,
    pixels: Tensor,
    words: Sequence[Sequence[str]],
    told: str,
    labels: tuple[str, ...],
    correct: Tensor,
    looked: LookedInto,
    states: Tensor | None = None,
) -> Inspected:
    """Keep of images, words and states those of the recorded rows and steps."""
    record = inspection[0]
    shown = record.step - 1
    return Inspected(
        title,
        inspection,
        pixels[list(record.rows)][:, shown],
        tuple(tuple(row[place] for place in shown.tolist()) for row in words),
        told,
        labels,
        int(correct.sum()),
        correct.numel(),
        *looked,
        None if states is None else states[list(record.rows)][:, shown],
    )
