"""A trained model at work: what it is shown, what it answers, and what it does to itself meanwhile.

Each kind of run has a function that gives a `Watched` (`srwm.fewshot.inspection`, `srwm.sequential.inspection`); a
kind of your own needs no more than `Recorder`, `answer_gradients` and the names of what it showed to its model.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from srwm.errors import InputError

from .record import Inspection

STREAM = 0x1245
"""Keeps the random numbers of what is shown apart from those of training and testing."""

MOST_SHOWN = 10_000
"""Episodes, questions and shots that are shown at a time: all of them stand in memory."""


@dataclass(frozen=True)
class WatchOptions:
    """What to show to a model, and what to record of it."""

    split: Literal["train", "validation", "test"] = "test"
    """Which classes to draw."""
    episodes: int = 1
    """Episodes or streams."""
    questions: int | None = None
    """Questions of each few-shot episode; none for one of each class."""
    shots: int | None = None
    """Labelled images of a class in a few-shot episode; none for the recipe's."""
    source: str | None = None
    """Other images than the recipe's, for few-shot episodes."""
    seed: int = 0
    """Seed of the drawing."""
    device: str = "cpu"
    """Where to compute."""
    data: Path | None = None
    """The data folder."""
    recorder: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Options of `Recorder`: layers, heads, rows, every, matrices, max_bytes."""

    def __post_init__(self) -> None:
        for name in ("episodes", "questions", "shots"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST_SHOWN:
                raise InputError(f"{name}={value}; expected 1 to {MOST_SHOWN:,}")


class Answer(NamedTuple):
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
class Watched:
    """A model at work: what it was shown, what it answered, and what it did to itself."""

    title: str
    """What was shown."""
    inspection: Inspection
    """What was recorded."""
    images: UInt8[Tensor, "b t c height width"]
    """The image of each recorded row and step."""
    words: tuple[tuple[str, ...], ...]
    """For each recorded row and step, what the model was told with the image."""
    told: str
    """What these words are."""
    labels: tuple[str, ...]
    """What each label is called."""
    right: int
    """How many answers were right, of all rows that ran."""
    asked: int
    """How many there were."""
    answers: tuple[Answer, ...]
    """The answers that were looked into."""
    gradients: dict[str, Float[Tensor, "n h e"]]
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


def make_watched(
    title: str,
    inspection: Inspection,
    pixels: Tensor,
    words: Sequence[Sequence[str]],
    told: str,
    labels: tuple[str, ...],
    right: Tensor,
    answers: tuple[Answer, ...],
    gradients: dict[str, Tensor],
    states: Tensor | None = None,
) -> Watched:
    """Keep of images, words and states those of the recorded rows and steps."""
    record = inspection[0]
    shown = record.step - 1
    return Watched(
        title,
        inspection,
        pixels[list(record.rows)][:, shown],
        tuple(tuple(row[place] for place in shown.tolist()) for row in words),
        told,
        labels,
        int(right.sum()),
        right.numel(),
        answers,
        gradients,
        None if states is None else states[list(record.rows)][:, shown],
    )
