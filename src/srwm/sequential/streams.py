"""Streams of data sets with delayed labels, drawn on the device in a few batched operations.

What is drawn is a pure function of (seed, stream, step): no worker processes, no state, nothing to save.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from srwm.data import draw_episodes
from srwm.data.random import random_integers, stream_key
from srwm.supervised.bank import source_order
from srwm.supervised.config import MOST_SOURCES, Order

from .bank import Bank
from .config import StreamConfig
from .measures import instance_numbers

NO_LABEL = -1
"""Stands in the place of a label that is not known."""


class Streams(NamedTuple):
    """Streams as places in a bank of images.

    All have the same length, trimmed or not: the steps that were trimmed away stand at the end, where `mask` is false.
    What comes later cannot disturb a model that reads from first to last. The axes `*s b` are those of the drawing:
    steps, if several were drawn at once, and the batch.
    """

    place: Int[Tensor, "*s b t"]
    """Where the image of each step lies in the bank."""
    source: Int[Tensor, "*s b t"]
    """The number of the set that it comes from."""
    labels: Int[Tensor, "*s b t"]
    """Its label, 0 to ways - 1."""
    previous: Int[Tensor, "*s b t"]
    """The label of the step before, across the borders of segments; -1 at the first step."""
    segment: Int[Tensor, "*s b t"]
    """The number of its segment in the stream."""
    instance: Int[Tensor, "*s b t"]
    """The how manieth image of its class it is in its segment, from 1."""
    mask: Bool[Tensor, "*s b t"]
    """Whether the step belongs to the stream."""


def draw_streams(
    bank: Bank,
    steps: Int[Tensor, "*s"],
    stream: StreamConfig,
    *,
    batch_size: int,
    parts: int = 1,
    order: Order | tuple[int, ...] | None = None,
    max_trim: int | None = None,
    seed: int,
    rng_stream: int = 0,
) -> Streams:
    """Draw a batch of streams for each of the given steps.

    Each segment has classes, images and a permutation of the labels of its own; its images are shuffled.

    Args:
        bank: what to draw from.
        steps: numbers of the steps, on the device where the streams are wanted; any shape, () for one step.
        stream: what a stream is.
        batch_size: streams a step.
        parts: equal parts of the batch, one after the other; each has an order and trims of its own, which all its
            streams share.
        order: another order than the stream's own; a tuple names the sources by number, first to last.
        max_trim: another number than the stream's own.
        seed: seed of the run.
        rng_stream: of random numbers; keeps training, validation and test apart.

    Returns:
        Streams of shape [*steps, batch_size, length of a stream].
    """
    device = steps.device
    sources, length = len(bank.segments), stream.segment_length
    each = [
        draw_episodes(
            bank.classes[one],
            steps,
            batch_size=batch_size,
            ways=stream.ways,
            shots=stream.per_class,
            seed=seed,
            rng_stream=rng_stream * (MOST_SOURCES + 1) + 1 + source,
        )
        for source, one in enumerate(bank.segments)
    ]
    # [*s, parts, rows, sources, length]
    place = torch.stack(
        [drawn.support + bank.firsts[one] for drawn, one in zip(each, bank.segments, strict=True)], dim=-2
    ).unflatten(-3, (parts, -1))
    labels = torch.stack([drawn.support_labels for drawn in each], dim=-2).unflatten(-3, (parts, -1))

    batches = steps[..., None] * parts + torch.arange(parts, device=device)
    key = stream_key(seed, rng_stream * (MOST_SOURCES + 1), batches)
    in_order = _order(stream.order if order is None else order, key, batches, sources)
    kept = length - _trims(key + 1, sources, stream.max_trim if max_trim is None else max_trim)

    # The segments in their order, then the steps that are kept before those that are not.
    segments = in_order[..., None, :, None].expand_as(place)
    place, labels = (field.gather(-2, segments).flatten(-2) for field in (place, labels))
    is_kept = (torch.arange(length, device=device) < kept[..., None]).flatten(-2)
    at = (~is_kept).byte().argsort(dim=-1, stable=True)[..., None, :].expand_as(place)
    place, labels = place.gather(-1, at), labels.gather(-1, at)

    segment = at // length
    sets = torch.tensor(bank.segments, device=device)[in_order]
    source = sets[..., None, :].expand(*segment.shape[:-1], sources).gather(-1, segment)
    mask = torch.arange(sources * length, device=device) < kept.sum(dim=-1)[..., None, None]
    previous = torch.cat([torch.full_like(labels[..., :1], NO_LABEL), labels[..., :-1]], dim=-1)
    instance = instance_numbers(labels, segment, groups=sources * stream.ways, ways=stream.ways)
    fields = (place, source, labels, previous, segment, instance, mask.expand_as(place))
    return Streams(*(field.flatten(-3, -2) for field in fields))


def rotations(sources: int) -> list[tuple[int, ...]]:
    """The orders in which each source comes first once."""
    return [tuple((first + i) % sources for i in range(sources)) for first in range(sources)]


def _order(order: Order | tuple[int, ...], key: Tensor, batches: Tensor, sources: int) -> Tensor:
    """The number of the source of each segment, [*batches, sources]."""
    if isinstance(order, tuple):
        return torch.tensor(order, device=key.device).expand(*batches.shape, sources)
    return source_order(order, key, batches, sources)


def _trims(key: Tensor, sources: int, most: int) -> Tensor:
    """How many steps each segment loses at its end, [*batches, sources]."""
    return random_integers(key, torch.full((*key.shape, sources), most + 1, device=key.device))
