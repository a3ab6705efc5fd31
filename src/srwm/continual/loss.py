"""The loss of continual learning: a term for each task at the end of each later one, by name."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from srwm.supervised.prototypes import prototypical_loss

from .config import LossConfig

Pair = tuple[int, int]
"""Task i after task j, both from 0: (j, i)."""


def term_name(after: int, task: int) -> str:
    """What a term is called, counted from 1 as people do: `task1_after2`."""
    return f"task{task + 1}_after{after + 1}"


def pairs(tasks: int) -> list[Pair]:
    """All terms of a sequence: every task so far at the end of each, n (n + 1) / 2 of them."""
    return [(after, task) for after in range(tasks) for task in range(after + 1)]


def cross_entropies(scores: Float[Tensor, "b n q ways"], labels: Int[Tensor, "b n q"]) -> Float[Tensor, "b n"]:
    """Mean cross-entropy over the queries of each task."""
    each = F.cross_entropy(scores.flatten(0, 2), labels.flatten(), reduction="none")
    return each.reshape(labels.shape).mean(dim=-1)


def weighted_mean(
    terms: Mapping[Pair, Float[Tensor, "b"]], source: Int[Tensor, "b n"], config: LossConfig
) -> Float[Tensor, ""]:
    """The weighted terms, over their number and that of the sequences.

    Args:
        terms: each term for each sequence; those that are not there do not count.
        source: the number of the source of each task.
        config: the weights.
    """
    total = torch.zeros((), device=source.device)
    for (after, task), each in terms.items():
        if after == task:
            total = total + config.forward * (each * source_factors(source[:, task], config, each)).mean()
        else:
            total = total + config.backward * each.mean()
    return total / len(terms)


def source_factors(source: Int[Tensor, "b"], config: LossConfig, like: Tensor) -> Float[Tensor, "b"]:
    """The factor on the forward terms of each sequence's task."""
    if not config.sources:
        return torch.ones_like(like)
    factors = torch.zeros_like(like)
    # Numbers, and no table of them: a tensor made here could not go to a GPU while a step is being recorded.
    for number, factor in enumerate(config.sources):
        factors = torch.where(source == number, factor, factors)
    return factors


def first_of_each_class(labels: Int[Tensor, "b k"], ways: int) -> Int[Tensor, "b ways"]:
    """The place of the first example of each class of a task, in the order in which they come.

    Args:
        labels: of the examples; every class is there.
        ways: classes of the task.
    """
    is_same = labels[:, :, None] == labels[:, None, :]
    earlier = torch.ones_like(is_same).tril(-1)
    is_first: Bool[Tensor, "b k"] = ~(is_same & earlier).any(dim=-1)
    return (~is_first).byte().argsort(dim=-1, stable=True)[:, :ways]


def tasks_prototypical_loss(
    support: Float[Tensor, "b n k f"],
    labels: Int[Tensor, "b n k"],
    query: Float[Tensor, "b n q f"],
    query_labels: Int[Tensor, "b n q"],
    ways: int,
) -> Float[Tensor, ""]:
    """Cross-entropy of telling the queries of all tasks apart by their distance from the mean of each class."""
    tasks = support.shape[1]
    offset = ways * torch.arange(tasks, device=labels.device)[:, None]
    known, wanted = ((each % ways + offset).flatten(1) for each in (labels, query_labels))
    return prototypical_loss(support.flatten(1, 2), known, query.flatten(1, 2), wanted, ways * tasks)
