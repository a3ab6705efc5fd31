"""One run of training on tasks of feature vectors, step by step, under the loop of `srwm.runs`."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from srwm.data.random import stream_key
from srwm.runs.adam import ScheduledAdam
from srwm.runs.model_files import load_weights
from srwm.runs.processes import Processes

from .config import TabularConfig
from .loading import load_tabular
from .network import TabularModel, build_network, random_projection
from .prior import TRAINING, Tasks
from .tasks import TaskSource, task_source

_PROJECTIONS = 1 << 32
"""Beyond the numbers of the streams of tasks: those of their projections."""


class TabularTrainer:
    """Trains a network to classify each example of a task from those before it; see `srwm.runs.loop.Checkpointed`.

    Args:
        config: the recipe.
        device: where to train.
        processes: this process among those of a `torchrun`; each draws every batch and takes its share of the tasks.
        source: where tasks come from; None for what the recipe says, in the usual data folder.

    Attributes:
        model: the network.
    """

    def __init__(
        self,
        config: TabularConfig,
        device: torch.device,
        processes: Processes | None = None,
        *,
        source: TaskSource | None = None,
    ) -> None:
        self.config, self.device, self.processes = config, device, processes or Processes()
        self.source = source or task_source(config, "train")
        torch.manual_seed(config.seed)
        self.model = build_network(config).to(device)
        if config.initial is not None:
            load_weights(self.model, load_tabular(config.initial, device).state_dict(), config.initial)
        # Loss, right answers, all answers.
        rates = config.optimizer.rates(config.model.hidden_size, config.train.total_steps)
        self.optimizer = ScheduledAdam(self.model, config.optimizer, rates, sums=3, processes=self.processes)

    def train_step(self, step: int) -> None:
        """Do one step."""
        tasks = self.source.draw(
            seed=self.config.seed, rng_stream=TRAINING, step=step, batch_size=self.config.train.batch_size
        )
        # Drawn for all processes alike, so that several train what one would.
        projection = task_projections(self.model, tasks, self.config.seed, TRAINING, step)
        asked = is_asked(tasks.labels, self.model.classes)
        rows = slice(self.processes.rank, None, self.processes.count)
        own, own_asked = Tasks(*(part[rows] for part in tasks)), asked[rows].to(self.device)
        self.optimizer.go_to(step)
        self.optimizer.zero_grad()
        scores, _ = self.model(
            own.x.to(self.device), own.labels.to(self.device), self.model.tasks_state(own, projection[rows])
        )
        scores, labels = scores[own_asked], own.labels.to(self.device)[own_asked]
        losses = F.cross_entropy(scores, labels, reduction="sum")
        loss = losses / asked.sum()
        (loss * self.processes.count).backward()
        self.optimizer.step(loss, torch.tensor(step, device=self.device))
        right = (scores.argmax(dim=-1) == labels).sum()
        self.optimizer.sums += torch.stack([each.detach().double() for each in (losses, right, own_asked.sum())])

    def metrics(self) -> dict[str, float]:
        """Loss and accuracy since the last call; every task is new."""
        loss, right, asked = self.optimizer.take_sums()
        return {
            "train/loss": loss / max(asked, 1),
            "train/accuracy": right / max(asked, 1),
            "train/gradient_norm": float(self.optimizer.gradient_norm),
        }

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold."""
        return self.optimizer.tensors()

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        self.optimizer.load_tensors(groups)


def task_projections(
    model: TabularModel, tasks: Tasks, seed: int, rng_stream: int, step: int
) -> Float[Tensor, "b f width"]:
    """Draw the projections of a batch of tasks, a function of the seed, the stream of random numbers and the step."""
    key = stream_key(seed, _PROJECTIONS + rng_stream, torch.tensor(step))
    b, _, features = tasks.x.shape
    return random_projection(b, features, model.config.model.width, torch.Generator().manual_seed(int(key)))


def is_asked(labels: Int[Tensor, "b t"], classes: int) -> Bool[Tensor, "b t"]:
    """Say which examples are of a class that has been seen before, so that the answer can be right."""
    seen = F.one_hot(labels, classes).cumsum(dim=1)
    return seen.gather(2, labels[..., None])[..., 0] > 1
