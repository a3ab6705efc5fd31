"""Sequences of tasks, drawn on the device in a few batched operations.

What is drawn is a pure function of (seed, rng_stream, step): no worker processes, no state, nothing to save.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from srwm.data import draw_episodes
from srwm.data.random import stream_key
from srwm.supervised.bank import source_order
from srwm.supervised.config import MOST_SOURCES, Order

from .bank import TaskBank
from .config import TasksConfig


class TaskSequences(NamedTuple):
    """Sequences of n tasks as places in a bank of images.

    The axes `*s b` are those of the drawing: steps, if several were drawn at once, and the batch.
    """

    support: Int[Tensor, "*s b n k"]
    """Where the labelled examples of each task lie, ways times shots in random order."""
    support_labels: Int[Tensor, "*s b n k"]
    """Their labels."""
    query: Int[Tensor, "*s b n q"]
    """Where the queries of each task lie; none of them is an example."""
    query_labels: Int[Tensor, "*s b n q"]
    """Their labels, of the same kind."""
    source: Int[Tensor, "*s b n"]
    """The number of the source of each task."""


def draw_sequences(
    bank: TaskBank,
    steps: Int[Tensor, "*s"],
    tasks: TasksConfig,
    *,
    batch_size: int,
    order: Order | None = None,
    seed: int,
    rng_stream: int = 0,
) -> TaskSequences:
    """Draw a batch of sequences for each of the given steps.

    The classes of all tasks of a sequence are different ones, in random order, which is also a random permutation of
    the labels within a task. All sequences of a step have their sources in the same order.

    Args:
        bank: what to draw from.
        steps: numbers of the steps, on the device where the sequences are wanted; any shape, () for one step.
        tasks: what a sequence is.
        batch_size: sequences a step.
        order: another order than the tasks' own.
        seed: seed of the run.
        rng_stream: of random numbers; keeps training, validation and test apart.

    Returns:
        Sequences of shape [*steps, batch_size, tasks, ...].
    """
    rounds, ways = tasks.rounds, tasks.ways * tasks.rounds
    found: list[list[Tensor]] = [[], [], [], []]
    for index, (one, first) in enumerate(zip(bank.classes, bank.firsts, strict=True)):
        drawn = draw_episodes(
            one,
            steps,
            batch_size=batch_size,
            ways=ways,
            shots=tasks.shots,
            queries=tasks.queries * ways,
            seed=seed,
            rng_stream=rng_stream * (MOST_SOURCES + 1) + 1 + index,
        )
        support = _by_round(drawn.support + first, drawn.support_labels, rounds, tasks.ways)
        query = _by_round(drawn.query + first, drawn.query_labels, rounds, tasks.ways)
        for parts, part in zip(found, (*support, *query), strict=True):
            parts.append(part)
    key = stream_key(seed, rng_stream * (MOST_SOURCES + 1), steps)
    in_order = source_order(tasks.order if order is None else order, key, steps, len(bank.classes))
    # Task p is of the source p % sources in this order, and its p // sources-th.
    source = in_order[..., torch.arange(tasks.tasks, device=steps.device) % len(bank.classes)]
    source = source[..., None, :].expand(*steps.shape, batch_size, tasks.tasks)
    stacked = (_tasks(torch.stack(parts, dim=-2), in_order, tasks.tasks) for parts in found)
    places, labels, questions, wanted = stacked
    if tasks.labels == "class_incremental":
        offset = tasks.ways * torch.arange(tasks.tasks, device=steps.device)[:, None]
        labels, wanted = labels + offset, wanted + offset
    return TaskSequences(places, labels, questions, wanted, source)


def _by_round(places: Tensor, labels: Tensor, rounds: int, ways: int) -> tuple[Tensor, Tensor]:
    """Cut drawn images into tasks by their class: places and labels within a task [*s, b, rounds, n]."""
    at = (labels // ways).argsort(dim=-1, stable=True)
    places, labels = (field.gather(-1, at).unflatten(-1, (rounds, -1)) for field in (places, labels % ways))
    return places, labels


def _tasks(field: Tensor, in_order: Tensor, tasks: int) -> Tensor:
    """The tasks of each sequence, in order: from [*s, b, rounds, sources, n] to [*s, b, tasks, n]."""
    at = in_order[..., None, None, :, None].expand(*field.shape)
    return field.gather(-2, at).flatten(-3, -2)[..., :tasks, :]
