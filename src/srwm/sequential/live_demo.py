"""A made-up input for live streams: images of known sources, whose classes change again and again without warning."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from srwm.data import draw_episodes
from srwm.errors import InputError
from srwm.live.requests import Request

from .bank import load_bank
from .config import StreamConfig
from .model import StreamModel

_RNG_STREAM = 0x11FE
"""Keeps these random numbers apart from those of training and testing."""


class Demo:
    """Labelled images in segments, each with classes and a permutation of the labels of its own.

    The segments go through the sources in turn. What step n shows is a function of the seed and n alone.

    Args:
        sources: where the images come from, as in `StreamConfig.sources`; their test classes are shown.
        model: says how many classes a segment has, and the shape of the images.
        switch_every: images of a segment.
        seed: of the drawing.
        start: images that were shown before.
        data: the data folder.

    Raises:
        InputError: if a source is unknown, not there, or too small.
    """

    def __init__(
        self,
        sources: Sequence[str],
        model: StreamModel,
        *,
        switch_every: int = 75,
        seed: int = 0,
        start: int = 0,
        data: Path | None = None,
    ) -> None:
        if switch_every < 1:
            raise InputError(f"classes switch every {switch_every} images; expected at least 1")
        channels, size, _ = model.image_shape
        self._stream = StreamConfig(
            sources=tuple(sources),
            ways=model.ways,
            per_class=-(-switch_every // model.ways),
            max_trim=0,
            image_size=size,
            channels=channels,
        )
        self._bank = load_bank(self._stream, "test", data)
        self._known = model.source_names
        self._switch_every, self._seed = switch_every, seed
        self.name = name_of(sources, switch_every, seed)
        self.position: int | str = start
        self._shown = start

    def __iter__(self) -> Iterator[Request]:
        while True:
            segment, first = divmod(self._shown, self._switch_every)
            places, labels, source = self._draw(segment)
            for place, label in zip(places[first:], labels[first:], strict=True):
                self.position = self._shown = self._shown + 1
                yield Request({"step": self._shown}, image=self._bank.images[place], label=label, source=source)

    def _draw(self, segment: int) -> tuple[list[int], list[int], str | None]:
        """Where the images of a segment lie, their labels, and which of the model's sources they are like."""
        which = self._bank.segments[segment % len(self._bank.segments)]
        drawn = draw_episodes(
            self._bank.classes[which],
            torch.tensor(segment),
            batch_size=1,
            ways=self._stream.ways,
            shots=self._stream.per_class,
            seed=self._seed,
            rng_stream=_RNG_STREAM,
        )
        places = (drawn.support[0] + self._bank.firsts[which])[: self._switch_every].tolist()
        name = self._bank.names[which]
        labels = drawn.support_labels[0][: self._switch_every].tolist()
        return places, labels, name if name in self._known else None


def name_of(sources: Sequence[str], switch_every: int, seed: int) -> str:
    """What such an input is called in a saved state."""
    return f"demo:{','.join(sources)}:{switch_every}:{seed}"
