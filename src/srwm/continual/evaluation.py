"""The test on drawn sequences: tasks of classes that were never trained on, all asked about at every boundary."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from srwm.nn import SequenceState
from srwm.runs.devices import at_once
from srwm.supervised.evaluation import IMAGES_AT_ONCE, chunks, embed
from srwm.supervised.network import evaluating

from .bank import TaskBank
from .config import TasksConfig
from .measures import ContinualEvaluation, TaskMatrix, task_matrix
from .model import ContinualModel
from .sequences import draw_sequences

TRAINING, VALIDATION, TEST, AUGMENTATION, SPLIT, CARRIED, REPLAYS = range(7)
"""Numbers that keep the random streams apart; each test set takes a further one."""

_SEQUENCES_AT_ONCE = 256


@dataclass(frozen=True)
class ContinualTask:
    """A task of b sequences: examples and queries, as features of their images."""

    support: Float[Tensor, "b k f"]
    """Features of the examples."""
    labels: Int[Tensor, "b k"]
    """Their labels."""
    query: Float[Tensor, "b q f"]
    """Features of the queries."""
    wanted: Int[Tensor, "b q"]
    """Their labels."""
    images: tuple[UInt8[Tensor, "k c h w"], UInt8[Tensor, "q c h w"]] | None = None
    """The images of the examples and the queries of a single sequence, for what does not go by features."""


@runtime_checkable
class ContinualLearner(Protocol):
    """What learns from tasks, and is asked about them: a network, or a classifier beside it."""

    def learn(self, task: ContinualTask) -> None:
        """Learn the examples of the next task."""

    def answer(self, task: ContinualTask) -> Int[Tensor, "b q"]:
        """Give the labels of a task's queries, without learning from them."""


class InContext:
    """The network itself, which learns by its state alone.

    Attributes:
        state: what it has learnt; None before the first task.
    """

    def __init__(self, model: ContinualModel) -> None:
        self.model = model
        self.state: SequenceState | None = None

    def learn(self, task: ContinualTask) -> None:
        """Learn the examples of the next task."""
        self.state = self.model.learn_features(task.support, task.labels, self.state)

    def answer(self, task: ContinualTask) -> Int[Tensor, "b q"]:
        """Give the labels of a task's queries."""
        query = task.query
        rows = max(1, at_once(IMAGES_AT_ONCE, query.device, floats=len(query) * self.model.config.model.widest))
        parts = [self.model.read_features(part, self.state).argmax(dim=-1) for part in query.split(rows, dim=1)]
        return torch.cat(parts, dim=1)


@torch.no_grad()
def accuracies(learner: ContinualLearner, tasks: Sequence[ContinualTask]) -> Float[Tensor, "b n n"]:
    """Learn task after task; accuracy of each sequence on each task so far after each one, zero above the diagonal."""
    found = tasks[0].support.new_zeros(len(tasks[0].support), len(tasks), len(tasks))
    for after, task in enumerate(tasks):
        learner.learn(task)
        for number, earlier in enumerate(tasks[: after + 1]):
            found[:, after, number] = (learner.answer(earlier) == earlier.wanted).float().mean(dim=1)
    return found


def evaluate(
    model: ContinualModel,
    bank: TaskBank,
    tasks: TasksConfig,
    *,
    sequences: int = 1000,
    seed: int = 0,
    rng_stream: int = TEST,
) -> TaskMatrix:
    """Test a model on sequences in the order in which the sources are listed; see `evaluate_orders`."""
    return _evaluate(
        model, bank, tasks, embed(model, bank.images), tuple(range(len(bank.names))), sequences, seed, rng_stream
    )


def evaluate_orders(
    model: ContinualModel,
    bank: TaskBank,
    tasks: TasksConfig,
    *,
    sets: int = 1,
    sequences: int = 1000,
    seed: int = 0,
) -> ContinualEvaluation:
    """Test a model on sequences in which each source comes first once.

    Args:
        model: the network; running statistics are used where it has any.
        bank: images of classes that it was not trained on.
        tasks: what a sequence is.
        sets: sets of sequences, each drawn by itself.
        sequences: sequences of each set in each order.
        seed: seed of the sequences.

    Raises:
        InputError: if there are too few classes or images.
    """
    bank.check_enough(tasks)
    features, sources = embed(model, bank.images), len(bank.names)
    orders = [tuple((first + i) % sources for i in range(sources)) for first in range(sources)]
    return ContinualEvaluation.of_orders(
        tuple(_evaluate(model, bank, tasks, features, order, sets * sequences, seed, TEST) for order in orders)
    )


@torch.no_grad()
def _evaluate(
    model: ContinualModel,
    bank: TaskBank,
    tasks: TasksConfig,
    features: Tensor,
    order: tuple[int, ...],
    sequences: int,
    seed: int,
    rng_stream: int,
) -> TaskMatrix:
    found = []
    # In the listed order of a bank whose sources are listed in this one.
    turned = TaskBank(
        tuple(bank.names[i] for i in order),
        bank.images,
        tuple(bank.classes[i] for i in order),
        tuple(bank.firsts[i] for i in order),
    )
    with evaluating(model):
        for step, size in enumerate(chunks(sequences, _SEQUENCES_AT_ONCE)):
            drawn = draw_sequences(
                turned,
                torch.tensor(step, device=features.device),
                tasks,
                batch_size=size,
                order="fixed",
                seed=seed,
                rng_stream=rng_stream,
            )
            rows = at_once(size, features.device, floats=tasks.images * model.config.model.widest)
            for support, labels, query, wanted in zip(*(field.split(rows) for field in drawn[:4]), strict=True):
                each = [
                    ContinualTask(features[support[:, i]], labels[:, i], features[query[:, i]], wanted[:, i])
                    for i in range(tasks.tasks)
                ]
                found.append(accuracies(InContext(model), each))
    names = tuple(itertools.islice(itertools.cycle(turned.names), tasks.tasks))
    return task_matrix(names, torch.cat(found))
