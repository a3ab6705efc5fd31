"""Live streams: images one by one, an answer to each, labels that come one step late, learning without end.

    model = load_stream_model("runs/my-run")
    stream = LiveStream.open(model, Path("state"))     # goes on where it was, or begins with a fresh state
    answer = stream.ask(load_image("0001.png", model.image_shape))
    stream.tell("cat")                                 # the model learns it together with the next image
    stream.save(Path("state"))

A model of streams sees each image together with the label of the image before, as in training; so it learns a label one
step after it was told. One of continual learning learns the image before with its label, then answers; it need not be
told where one task ends and the next begins. Labels are numbers from 0 to ways - 1, or names: the first names take the
slots 0, 1, 2... in the order in which they appear. Nothing is kept for each step, so a stream may go on for ever.

`srwm stream` is the same as a command; `srwm stream --help` describes its lines of JSON.
"""

import functools
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from srwm.data.decode import decode_image, quiet_pillow, resize_images
from srwm.errors import InputError, RunError
from srwm.nn import SequenceState
from srwm.runs.reading import read_file

from .model import LiveModel
from .saved_state import (
    MOST_TASKS,
    Known,
    Position,
    StreamProgress,
    restore_stream,
    save_stream,
    state_norm,
    weights_digest,
)

__all__ = ["Answer", "LiveStream", "StreamReport", "load_image"]

Label = int | str

_MOST_IMAGE_BYTES = 1 << 28
"""No file of so many pixels as are read is larger, however it is packed."""


class Answer(NamedTuple):
    """What the model says about one image."""

    step: int
    """Number of the image in the stream, from 1."""
    prediction: Label | None
    """The likeliest label: a name where names are in use, else a number. None for a slot that has no name yet."""
    probability: float
    """How likely it is, to the model."""
    probabilities: tuple[float, ...]
    """Of each slot."""


class StreamReport(NamedTuple):
    """How a stream has been doing since the report before."""

    step: int
    """Images answered since the stream began."""
    accuracy: float | None
    """Accuracy among the images whose label came; None if none came."""
    labelled: int
    """How many images that were."""
    state_norm: float
    """Euclidean norm of all that the model has changed in itself."""
    finite: bool
    """Whether all of it is finite."""
    known: dict[str, float]
    """Accuracy of the questions about each task that was asked about."""


class LiveStream:
    """One stream: a model, what it has learnt so far, and the names of the labels.

    Args:
        model: what `load_stream_model` gave.
        source: which of `model.source_names` the images are like, unless `ask` says otherwise; need not be said where
            the model scales all alike.

    Attributes:
        model: the model.
        state: what it has learnt; None at the start.
        progress: all that the stream knows beside.
        position: where its input was when it was saved; None if nobody said.

    Raises:
        InputError: if the model has no such source.
    """

    def __init__(self, model: LiveModel, *, source: str | None = None) -> None:
        names = model.source_names
        if source is not None and source not in names:
            raise InputError(f"source {source!r} is not one of the model's: {', '.join(names)}")
        self.model = model
        self.state: SequenceState | None = None
        self.progress = StreamProgress()
        self.position: Position | None = None
        self._source = names[0] if source is None and len(names) == 1 else source

    @classmethod
    def open(cls, model: LiveModel, folder: Path, *, source: str | None = None) -> "LiveStream":
        """Go on with the stream saved in a folder, or begin one if nothing is saved there.

        Raises:
            InputError: if what is there belongs to another model, is no saved stream, or is broken through and through.
        """
        stream = cls(model, source=source)
        saved = restore_stream(folder, model, stream._digest)
        if saved is not None:
            stream.state, stream.progress, stream.position = saved
        return stream

    def save(self, folder: Path, position: Position | None = None) -> None:
        """Save the stream, whole or not at all; the save before is kept too, in case a disk goes bad.

        Args:
            folder: where; made if it is not there.
            position: where the input is, for whoever goes on with it.

        Raises:
            RunError: if it cannot be written, or the state is not finite.
        """
        if not math.isfinite(state_norm(self.state)):
            raise RunError(f"the state is not finite at step {self.step} and is not saved; begin anew with a reset")
        save_stream(folder, self._digest, self.state, self.progress, position)

    @property
    def step(self) -> int:
        """Images answered since the stream began."""
        return self.progress.step

    @property
    def length(self) -> int:
        """Images answered since it was last reset: at the beginning, by a reset, or because it had to forget."""
        return self.progress.step - self.progress.began

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the first slots, where labels are names."""
        return self.progress.names

    @property
    def awaits_label(self) -> bool:
        """Whether the last image was answered and has no label yet."""
        return self.progress.predicted is not None

    @torch.no_grad()
    def ask(self, image: UInt8[Tensor, "c h w"] | Float[Tensor, "c h w"], *, source: str | None = None) -> Answer:
        """Show the next image, with the label of the one before if it was told, and get the answer.

        Args:
            image: of the model's shape, uint8 or floats in [0, 1]; see `load_image`.
            source: which of the model's sources it is like, if not the stream's.

        Raises:
            InputError: if the image or the source does not fit; the stream is then as it was.
            RunError: if the answer is not finite; the stream is then as it was.
        """
        probabilities, self.state = self._observe(image, source)
        progress = self.progress
        progress.step += 1
        answer = self._answer(probabilities)
        progress.previous_label, progress.predicted = None, probabilities.index(answer.probability)
        return answer

    @torch.no_grad()
    def question(self, image: UInt8[Tensor, "c h w"] | Float[Tensor, "c h w"], *, source: str | None = None) -> Answer:
        """Ask what an image shows, and leave the stream as it was: nothing is learnt from a question.

        Args:
            image: as in `ask`.
            source: as in `ask`.

        Raises:
            InputError: as in `ask`.
            RunError: as in `ask`.
        """
        return self._answer(self._observe(image, source)[0])

    def mark(self, task: str, answer: Answer, label: Label) -> None:
        """Count the answer to a question for the next report, under the name of the task that it was about.

        Raises:
            InputError: if there is no such label, or too many tasks were asked about.
        """
        self.check_label(label)
        known = {each.task: each for each in self.progress.known}
        if task not in known and len(known) == MOST_TASKS:
            raise InputError(f"task {task!r} is one too many; expected at most {MOST_TASKS} between two reports")
        so_far = known.get(task, Known(task, 0, 0))
        right = so_far.right + (answer.prediction == label)
        self.progress.known = tuple({**known, task: Known(task, right, so_far.asked + 1)}.values())

    def tell(self, label: Label) -> None:
        """Say what the last image showed; the model learns it together with the next image.

        Raises:
            InputError: if no image awaits a label, or there is no such label.
        """
        progress, slot = self.progress, self.check_label(label)
        if progress.predicted is None:
            raise InputError(
                f"no image awaits the label {label!r}: none was answered yet, or the last one has its label already "
                "or could not be answered"
            )
        if isinstance(label, int):
            progress.numbered = True
        elif slot == len(progress.names):
            progress.names = (*progress.names, label)
        progress.labelled += 1
        progress.right += progress.predicted == slot
        progress.previous_label, progress.predicted = slot, None

    def check_label(self, label: Label) -> int:
        """Give the slot of a label, or the one that it would take.

        Raises:
            InputError: if there is no such label.
        """
        names, ways = self.names, self.model.ways
        if isinstance(label, int) and not isinstance(label, bool):
            if names:
                raise InputError(f"label {label} is a number, but so far labels were names: {', '.join(names)}")
            if not 0 <= label < ways:
                raise InputError(f"label {label} is out of range; expected 0 to {ways - 1}, or names")
            return label
        if not isinstance(label, str) or not label:
            raise InputError(f"label {label!r} is no label; expected a number from 0 to {ways - 1}, or a name")
        if self.progress.numbered:
            raise InputError(f"label {label!r} is a name, but so far labels were numbers; expected 0 to {ways - 1}")
        if label not in names and len(names) == ways:
            raise InputError(
                f"label {label!r} is one name too many: the model tells {ways} classes apart, and they are "
                f"{', '.join(names)}; a reset begins anew"
            )
        return names.index(label) if label in names else len(names)

    def pass_over(self) -> None:
        """Note that an image came that could not be shown, so that its label is not taken for that of another."""
        self.progress.predicted = None

    def reset(self) -> None:
        """Reset: forget all that was learnt and all names; steps are counted on."""
        self.state = None
        self.progress = replace(
            self.progress, began=self.step, previous_label=None, predicted=None, names=(), numbered=False
        )

    def forget(self) -> None:
        """Forget all that was learnt, but not the names; the labels go on as they are."""
        self.state = None
        self.progress.began = self.step
        self.progress.previous_label = None

    def report(self) -> StreamReport:
        """Say how the stream has been doing since the last call."""
        progress, norm = self.progress, state_norm(self.state)
        accuracy = progress.right / progress.labelled if progress.labelled else None
        known = {each.task: each.right / each.asked for each in progress.known}
        report = StreamReport(progress.step, accuracy, progress.labelled, norm, math.isfinite(norm), known)
        progress.right, progress.labelled, progress.known = 0, 0, ()
        return report

    def _observe(self, image: Tensor, source: str | None) -> tuple[tuple[float, ...], SequenceState]:
        """What the model makes of an image: probabilities, and its state after it; the stream is as it was."""
        try:
            scores, state = self.model.observe(
                image, self.progress.previous_label, self.state, source=self._source if source is None else source
            )
        except ValueError as error:
            raise InputError(str(error)) from error
        probabilities = tuple(scores.tolist())
        if not math.isfinite(sum(probabilities)):
            raise RunError(
                f"the answer at step {self.step + 1} is not finite: the state has grown out of bounds; begin anew, or "
                "go back to a saved state; with a bound (--max-norm) it begins anew by itself"
            )
        return probabilities, state

    def _answer(self, probabilities: tuple[float, ...]) -> Answer:
        probability = max(probabilities)
        return Answer(self.step, self._label_of(probabilities.index(probability)), probability, probabilities)

    def _label_of(self, slot: int) -> Label | None:
        if not self.names:
            return slot
        return self.names[slot] if slot < len(self.names) else None

    @functools.cached_property
    def _digest(self) -> str:
        return weights_digest(self.model)


def load_image(path: Path | str, shape: tuple[int, int, int], *, invert: bool = False) -> UInt8[Tensor, "c h w"]:
    """Read an image file for a model: its channels, its size (bilinear; others than square ones are stretched).

    Args:
        path: a PNG, JPEG, WebP, BMP or GIF file.
        shape: the model's `image_shape`.
        invert: turn dark ink on light paper into bright ink on dark.

    Raises:
        InputError: if there is no such file, or it is not a sound image.
    """
    channels, size, _ = shape
    data = read_file(Path(path), _MOST_IMAGE_BYTES)
    with quiet_pillow():
        image = resize_images(decode_image(data, channels, str(path))[None], size)[0]
    # A copy of its own: what Pillow gives cannot be written to, and torch wants that it could.
    return torch.from_numpy(255 - image if invert else np.array(image))
