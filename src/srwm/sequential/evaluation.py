"""The standard test: streams of classes that were never trained on, in every order, without trimming."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from srwm.runs.devices import at_once
from srwm.supervised.evaluation import chunks, images_at_once
from srwm.supervised.network import evaluating
from srwm.supervised.statistics import Measured

from .bank import Bank
from .config import StreamConfig
from .measures import INSTANCES, accuracy_by_step, count_right, final_level, steps_to_recover
from .model import StreamModel
from .streams import Streams, draw_streams, rotations

TRAINING, VALIDATION, TEST, AUGMENTATION = range(4)
"""Numbers that keep the random streams apart; each test set takes a further one."""

_STREAMS_AT_ONCE = 256


@dataclass(frozen=True)
class SegmentMeasures:
    """What was measured on one segment."""

    source: str
    """Where its images come from."""
    total: Measured
    """Accuracy over all its steps."""
    instances: tuple[Measured, ...]
    """Accuracy on the k-th image of a class, for each k of the evaluation."""
    final: float
    """Accuracy over the last fifth of its steps."""
    recovery: int | None
    """Steps from its start until the accuracy over as many steps as there are classes is 90% of the final one; None if
    that is never, or the final one is that of guessing."""


@dataclass(frozen=True)
class OrderMeasures:
    """What was measured on streams of one order."""

    sources: tuple[str, ...]
    """The sources, first to last."""
    segments: tuple[SegmentMeasures, ...]
    """What was measured on each segment."""
    curve: tuple[float, ...]
    """Accuracy at each step of the stream."""

    def __post_init__(self) -> None:
        if not self.sources or len(self.segments) != len(self.sources):
            raise ValueError(f"{len(self.segments)} segments of {len(self.sources)} sources; expected one of each")


@dataclass(frozen=True)
class StreamEvaluation:
    """What was measured on streams of classes that were not trained on."""

    accuracy: float
    """Mean over all orders, segments and steps."""
    interval: float | None
    """Half its 95% interval, from the spread of the single streams. It says how well these streams measure this one
    model; another seed of the training gives another model."""
    sets: tuple[float, ...]
    """Accuracy of each set."""
    streams: int
    """Streams of each order."""
    instances: tuple[int, ...]
    """The numbers k that `SegmentMeasures.instances` are about."""
    orders: tuple[OrderMeasures, ...]
    """One entry for each order."""

    def __post_init__(self) -> None:
        for order in self.orders:
            for segment in order.segments:
                if len(segment.instances) != len(self.instances):
                    raise ValueError(
                        f"{segment.source} has {len(segment.instances)} accuracies by instance; "
                        f"expected {len(self.instances)}"
                    )


def evaluate(
    model: StreamModel,
    bank: Bank,
    *,
    sets: int = 5,
    streams: int = 816,
    seed: int = 0,
    rng_stream: int = TEST,
    instances: Sequence[int] = INSTANCES,
) -> StreamEvaluation:
    """Test a model on streams in which each source comes first once, without trimming.

    Args:
        model: the network; its running statistics are used.
        bank: images of classes that it was not trained on, of the sources it was trained on.
        sets: number of sets.
        streams: streams of each set in each order.
        seed: seed of the streams.
        rng_stream: of random numbers; keeps the streams apart from those of other uses; each set takes its own.
        instances: which instances of a class to report on; those beyond the segments' are left out.

    Raises:
        InputError: if there are too few classes or images.
    """
    stream = model.config.stream
    bank.check_enough(stream)
    features = embed(model, bank)
    kept = tuple(k for k in instances if k <= stream.per_class)
    orders, of_streams = [], []
    for order in rotations(len(bank.segments)):
        parts = [
            answers(model, bank, features, order=order, streams=streams, seed=seed, rng_stream=rng_stream + index)
            for index in range(sets)
        ]
        right, drawn = _joined(parts)
        orders.append(_order_measures(right, drawn, bank, stream, order, kept))
        of_streams.append(right.double().mean(dim=1).reshape(sets, streams))
    # The i-th streams of all orders hold the same segments, so only their mean is one of many independent values.
    by_stream = torch.stack(of_streams)
    whole = _measured(by_stream.mean(dim=0).flatten())
    means = tuple(by_stream.mean(dim=(0, 2)).tolist())
    return StreamEvaluation(whole.mean, whole.interval, means, sets * streams, kept, tuple(orders))


@torch.no_grad()
def embed(model: StreamModel, bank: Bank) -> Float[Tensor, "n f"]:
    """Turn every image of a bank into features, once: outside of training they do not depend on the stream."""
    device = model.mean.device
    together = images_at_once(model, device)
    with evaluating(model):
        return torch.cat(
            [
                model.features(model.normalise(images.to(device), of_set.to(device)))
                for images, of_set in zip(bank.images.split(together), bank.set_of_image().split(together), strict=True)
            ]
        )


@torch.no_grad()
def answers(
    model: StreamModel,
    bank: Bank,
    features: Float[Tensor, "n f"],
    *,
    order: tuple[int, ...],
    streams: int,
    seed: int,
    rng_stream: int,
) -> tuple[Bool[Tensor, "streams t"], Streams]:
    """Draw streams of one order, without trimming, and say where the model's best guess is right."""
    parts = []
    with evaluating(model):
        for step, size in enumerate(chunks(streams, _STREAMS_AT_ONCE)):
            drawn = draw_streams(
                bank,
                torch.tensor(step, device=features.device),
                model.config.stream,
                batch_size=size,
                order=order,
                max_trim=0,
                seed=seed,
                rng_stream=rng_stream,
            )
            together = at_once(size, features.device, floats=drawn.place.shape[1] * model.config.model.widest)
            read = zip(drawn.place.split(together), drawn.previous.split(together), strict=True)
            guesses = [model.answer(features[place], previous)[0].argmax(dim=-1) for place, previous in read]
            parts.append((torch.cat(guesses) == drawn.labels, drawn))
    return _joined(parts)


def _joined(parts: Sequence[tuple[Tensor, Streams]]) -> tuple[Tensor, Streams]:
    right = torch.cat([each for each, _ in parts])
    fields = zip(*(drawn for _, drawn in parts), strict=True)
    return right, Streams(*(torch.cat(field) for field in fields))


def _order_measures(
    right: Tensor, drawn: Streams, bank: Bank, stream: StreamConfig, order: tuple[int, ...], instances: tuple[int, ...]
) -> OrderMeasures:
    curve = accuracy_by_step(right)
    sources = tuple(bank.names[bank.segments[source]] for source in order)
    segments = []
    for index, source in enumerate(sources):
        hits, asked = count_right(right, drawn.instance, drawn.segment == index, (0, *instances))
        total, *each = (hits / asked).double().unbind(dim=1)
        part = curve.unflatten(0, (len(order), -1))[index]
        segments.append(
            SegmentMeasures(
                source,
                _measured(total),
                tuple(_measured(column) for column in each),
                final_level(part),
                steps_to_recover(part, window=stream.ways, chance=1 / stream.ways),
            )
        )
    return OrderMeasures(sources, tuple(segments), tuple(curve.tolist()))


def _measured(values: Tensor) -> Measured:
    """Mean over streams; the steps of one stream hang together, so the stream is what is counted."""
    number = len(values)
    interval = 1.96 * float(values.std()) / math.sqrt(number) if number > 1 else None
    return Measured(float(values.mean()), interval)
