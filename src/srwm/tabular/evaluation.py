"""The test: tasks that no training has drawn, beside what nearest mean says of them."""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.supervised.network import evaluating

from .config import TabularConfig
from .network import TabularModel
from .prior import TEST, Tasks, draw_tasks
from .tasks import Episodic, task_source
from .trainer import is_asked, task_projections

_AT = (1, 5, 10, 20, 50, 100, 250)
"""Examples before which accuracy is said; those that tasks have."""
_PIECE = 50
"""Tasks that are tested at once."""


@dataclass(frozen=True)
class TabularEvaluation:
    """What was measured."""

    accuracy: float
    """Share of right answers: in random tasks of all examples whose class has been seen before, each asked before its
    label is known; in episodes of the queries, which are not learnt."""
    nearest_mean: float
    """The same of nearest mean: the class whose mean is nearest, on features standardised alike."""
    interval: float
    """Half the 95% interval of the accuracy, from the spread of the tasks."""
    loss: float
    """Mean cross-entropy."""
    by_example: dict[str, float]
    """Accuracy with so many labelled examples, or up to a tenth more; empty for episodes."""
    nearest_mean_by_example: dict[str, float]
    """The same of nearest mean."""
    tasks: int
    """Tasks that were drawn."""


@torch.no_grad()
def evaluate(
    model: TabularModel,
    config: TabularConfig,
    *,
    tasks: int = 1000,
    seed: int = 0,
    rng_stream: int = TEST,
    split: str = "test",
    folder: Path | None = None,
) -> TabularEvaluation:
    """Test a network.

    Args:
        model: the network.
        config: its recipe, which says what tasks.
        tasks: how many.
        seed: of the tasks; those of a training with the same seed are others.
        rng_stream: `srwm.tabular.prior.TEST`, or another one.
        split: of a pack of features.
        folder: the data folder, for a pack of features.

    Raises:
        InputError: if the pack is not there, or has too little.
    """
    source = task_source(config, split, folder) if config.features is not None else None
    pieces = []
    with evaluating(model):
        for step, first in enumerate(range(0, tasks, _PIECE)):
            size = min(_PIECE, tasks - first)
            if source is None:
                drawn = draw_tasks(config.prior, seed=seed, rng_stream=rng_stream, step=step, batch_size=size)
            else:
                drawn = source.draw(seed=seed, rng_stream=rng_stream, step=step, batch_size=size)
            projection = task_projections(model, drawn, seed, rng_stream, step)
            support = int(drawn.scaled_by[0]) if isinstance(source, Episodic) else None
            pieces.append(_outcome(model, drawn, projection, support))
    ours, nearest, asked, losses = (torch.cat(parts).double() for parts in zip(*pieces, strict=True))
    by_task = ours.sum(dim=1) / asked.sum(dim=1).clamp_min(1)
    return TabularEvaluation(
        accuracy=float(ours.sum() / asked.sum()),
        nearest_mean=float(nearest.sum() / asked.sum()),
        interval=1.96 * float(by_task.std()) / math.sqrt(len(by_task)) if len(by_task) > 1 else 0.0,
        loss=float(losses.sum() / asked.sum()),
        by_example={} if source is not None else _by_example(ours, asked),
        nearest_mean_by_example={} if source is not None else _by_example(nearest, asked),
        tasks=tasks,
    )


def _outcome(
    model: TabularModel, drawn: Tasks, projection: Tensor, support: int | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Where the network and nearest mean are right, which examples are asked, and the loss of each [b, t]."""
    state = model.tasks_state(drawn, projection)
    device = state.projection.device
    x, labels = drawn.x.to(device), drawn.labels.to(device)
    asked = is_asked(labels, model.classes)
    if support is None:
        scores = model(x, labels, state)[0]
        nearest = model.nearest_mean(x, labels, state)
    else:
        _, state = model(x[:, :support], labels[:, :support], state)
        x, labels, asked = (part[:, support:] for part in (x, labels, asked))
        scores = model.read(x, state)
        nearest = model.nearest_mean(x, None, state)
    losses = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)
    right = ((said.argmax(dim=-1) == labels) & asked for said in (scores, nearest))
    found = (*right, asked, losses.masked_fill(~asked, 0.0))
    return tuple(part.cpu() for part in found)  # type: ignore[return-value]


def _by_example(right: Tensor, asked: Tensor) -> dict[str, float]:
    found, right, asked = {}, right.sum(dim=0), asked.sum(dim=0)
    for first in _AT:
        window = slice(first, first + max(1, first // 10))
        if first < len(right) and float(asked[window].sum()) > 0:
            found[str(first)] = float(right[window].sum() / asked[window].sum())
    return found
