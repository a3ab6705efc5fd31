"""What a model still knows: the accuracy on each task after each later one, and what it comes to."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from srwm.supervised.statistics import Measured, t_95


@dataclass(frozen=True)
class TaskMatrix:
    """Accuracy on task i after task j, over sequences of the same kind."""

    tasks: tuple[str, ...]
    """What each task is called, first to last."""
    matrix: tuple[tuple[Measured, ...], ...]
    """Row j: accuracy on each of the tasks so far after task j."""
    accuracy: Measured
    """Mean over all tasks after the last one."""
    forgetting: Measured | None
    """How much accuracy was lost on the way, mean over all tasks but the last: after each task itself, minus after the
    last one. It is minus the backward transfer of Lopez-Paz and Ranzato (2017). None for a single task."""
    sequences: int
    """Sequences that were drawn."""

    def __post_init__(self) -> None:
        if not self.tasks or [len(row) for row in self.matrix] != list(range(1, len(self.tasks) + 1)):
            raise ValueError(
                f"the matrix has rows of {[len(row) for row in self.matrix]} entries for {len(self.tasks)} tasks; "
                "expected 1, 2, ... as many as there are tasks"
            )


@dataclass(frozen=True)
class ContinualEvaluation:
    """What was measured on sequences of tasks that were not trained on."""

    accuracy: float
    """Mean over all orders of the mean over all tasks after the last one."""
    interval: float | None
    """Half its 95% interval, from the spread of the single sequences, where there is one order."""
    orders: tuple[TaskMatrix, ...]
    """One entry for each order of the sources."""

    @classmethod
    def of_orders(cls, orders: tuple[TaskMatrix, ...]) -> "ContinualEvaluation":
        """Put the orders together."""
        mean = math.fsum(each.accuracy.mean for each in orders) / len(orders)
        return cls(mean, orders[0].accuracy.interval if len(orders) == 1 else None, orders)


def task_matrix(names: tuple[str, ...], accuracies: Float[Tensor, "b n n"]) -> TaskMatrix:
    """Put together what was measured on single sequences.

    Args:
        names: of the tasks.
        accuracies: of each sequence, row j on task i after task j; what lies above the diagonal is not looked at.
    """
    values = accuracies.double()
    tasks = len(names)
    matrix = tuple(tuple(measured(values[:, after, task]) for task in range(after + 1)) for after in range(tasks))
    forgetting = None
    if tasks > 1:
        when_learnt, in_the_end = values.diagonal(dim1=1, dim2=2)[:, :-1], values[:, -1, :-1]
        forgetting = measured((when_learnt - in_the_end).mean(dim=1))
    return TaskMatrix(names, matrix, measured(values[:, -1].mean(dim=1)), forgetting, len(values))


def measured(values: Float[Tensor, "b"]) -> Measured:
    """The mean of independent values, with its 95% interval by Student's t; none for a single one."""
    number = len(values)
    mean = float(values.mean())
    if number == 1:
        return Measured(mean, None)
    return Measured(mean, t_95(number - 1) * float(torch.std(values.double())) / math.sqrt(number))
