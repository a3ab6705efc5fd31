"""Several sequences of the same images: their encoding serves again, with other tasks, other labels, other examples."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from srwm.data.random import random_bits, stream_key
from srwm.supervised.config import MOST_SOURCES

from .config import TasksConfig
from .evaluation import REPLAYS
from .sequences import TaskSequences


class Replays(NamedTuple):
    """R sequences made of the images of each drawn one; the first is the drawn one itself.

    Its images are counted task by task, in each task the examples before the queries.
    """

    support: Int[Tensor, "*s b r n k"]
    """Which of the images are the examples of each task, in random order."""
    support_labels: Int[Tensor, "*s b r n k"]
    """Their labels."""
    query: Int[Tensor, "*s b r n q"]
    """Which are the queries of each task."""
    query_labels: Int[Tensor, "*s b r n q"]
    """Their labels."""


def replay(drawn: TaskSequences, steps: Int[Tensor, "*s"], tasks: TasksConfig, *, seed: int) -> Replays:
    """Make further sequences of the images of drawn ones.

    The classes of a source are shared out anew among its tasks and labels, and the images of each class among examples
    and queries. A pure function of seed and steps.
    """
    per_class, examples = tasks.shots + tasks.queries, drawn.support.shape[-1]
    number, device = tasks.tasks, steps.device
    count = torch.arange(number * tasks.ways * per_class, device=device).reshape(number, -1)
    first = Replays(
        count[:, :examples].expand(drawn.support.shape),
        drawn.support_labels,
        count[:, examples:].expand(drawn.query.shape),
        drawn.query_labels,
    )
    if tasks.replays == 1:
        return Replays(*(field.unsqueeze(-3) for field in first))
    shape = (drawn.support.shape[-3], tasks.replays - 1)
    key = stream_key(seed, REPLAYS * (MOST_SOURCES + 1), steps)
    # The images class by class: [*s, b, classes, images].
    local = torch.cat([drawn.support_labels, drawn.query_labels], dim=-1) % tasks.ways
    slot = (local + tasks.ways * torch.arange(number, device=device)[:, None]).flatten(-2)
    of_class = slot.argsort(dim=-1, stable=True).unflatten(-1, (-1, per_class))
    # Which images of a class are examples.
    classes = number * tasks.ways
    order = random_bits(key, (*shape, classes, per_class)).argsort(dim=-1, stable=True)
    images = of_class.unsqueeze(-3).expand(order.shape).gather(-1, order)
    # Which class takes which place; only classes of one source change places.
    source = drawn.source.repeat_interleave(tasks.ways, dim=-1)[..., None, :]
    ranked = random_bits(key + 1, (*shape, classes)) + (source << 32)
    taken, places = ranked.argsort(dim=-1, stable=True), source.expand(ranked.shape).argsort(dim=-1, stable=True)
    chosen = torch.empty_like(taken).scatter_(-1, places, taken)
    images = images.gather(-2, chosen[..., None].expand(images.shape)).unflatten(-2, (number, tasks.ways))
    labels = torch.arange(tasks.ways, device=device)[:, None]
    if tasks.labels == "class_incremental":
        labels = labels + tasks.ways * torch.arange(number, device=device)[:, None, None]
    labels = labels.expand(images.shape)
    support, known = (field[..., : tasks.shots].flatten(-2) for field in (images, labels))
    query, wanted = (field[..., tasks.shots :].flatten(-2) for field in (images, labels))
    mixed = random_bits(key + 2, (*shape, number, examples)).argsort(dim=-1, stable=True)
    fields = (support.gather(-1, mixed), known.gather(-1, mixed), query, wanted)
    return Replays(*(torch.cat([one.unsqueeze(-3), more], dim=-3) for one, more in zip(first, fields, strict=True)))
