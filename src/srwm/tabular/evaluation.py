"""The test: tasks of the prior that no training has drawn, beside what nearest mean says of them."""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from srwm.supervised.network import evaluating

from .config import TabularConfig
from .network import TabularModel
from .prior import TEST, draw_tasks
from .trainer import answer, projection_generator

_AT = (1, 5, 10, 20, 50, 100, 250)
"""Examples before which accuracy is said; those that tasks have."""
_PIECE = 50
"""Tasks that are tested at once."""


@dataclass(frozen=True)
class TabularEvaluation:
    """What was measured on tasks of the prior, example by example, each from those before it."""

    accuracy: float
    """Share of right answers, of all examples whose class has been seen before."""
    nearest_mean: float
    """The same of nearest mean: the class whose mean is nearest, on features standardised alike."""
    loss: float
    """Mean cross-entropy."""
    by_example: dict[str, float]
    """Accuracy with so many labelled examples, or up to a tenth more."""
    nearest_mean_by_example: dict[str, float]
    """The same of nearest mean."""
    tasks: int
    """Tasks that were drawn."""


@torch.no_grad()
def evaluate(
    model: TabularModel, config: TabularConfig, *, tasks: int = 1000, seed: int = 0, stream: int = TEST
) -> TabularEvaluation:
    """Test a network.

    Args:
        model: the network.
        config: its recipe; `prior` says what tasks.
        tasks: how many.
        seed: of the tasks; those of a training with the same seed are others.
        stream: `srwm.tabular.prior.TEST`, or another one.
    """
    right = torch.zeros(3, config.prior.examples, dtype=torch.float64)  # of the network, of nearest mean, asked
    losses = 0.0
    with evaluating(model):
        for step, first in enumerate(range(0, tasks, _PIECE)):
            batch = draw_tasks(config.prior, seed=seed, stream=stream, step=step, batch_size=min(_PIECE, tasks - first))
            answers = answer(model, batch, projection_generator(seed, stream, step))
            nearest = model.nearest_mean(batch, projection_generator(seed, stream, step)).cpu()
            scores, asked = answers.scores.cpu(), answers.asked.cpu()
            losses += float(F.cross_entropy(scores[asked], batch.labels[asked], reduction="sum"))
            both = ((said.argmax(dim=-1) == batch.labels) & asked for said in (scores, nearest))
            right += torch.stack([part.sum(dim=0).double() for part in (*both, asked)])
    total = right.sum(dim=1)
    return TabularEvaluation(
        accuracy=float(total[0] / total[2]),
        nearest_mean=float(total[1] / total[2]),
        loss=losses / float(total[2]),
        by_example=_by_example(right[0], right[2]),
        nearest_mean_by_example=_by_example(right[1], right[2]),
        tasks=tasks,
    )


def _by_example(right: torch.Tensor, asked: torch.Tensor) -> dict[str, float]:
    found = {}
    for first in _AT:
        window = slice(first, first + max(1, first // 10))
        if first < len(right) and float(asked[window].sum()) > 0:
            found[str(first)] = float(right[window].sum() / asked[window].sum())
    return found
