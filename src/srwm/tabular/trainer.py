"""One run of training on random tasks, step by step, under the loop of `srwm.runs`."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from srwm.data.random import stream_key
from srwm.runs.processes import Processes
from srwm.runs.training_state import load_training_tensors, take_sums, training_tensors
from srwm.supervised.optimizer import ScheduledAdam

from .config import TabularConfig
from .network import TabularModel, build_network
from .prior import TRAINING, Tasks, draw_tasks

_PROJECTIONS = 1 << 32
"""Beyond the numbers of the streams of tasks: those of their projections."""


class Answers(NamedTuple):
    """What a network says of a batch of tasks, each example before its label is known."""

    scores: Float[Tensor, "b t classes"]
    asked: Bool[Tensor, "b t"]
    """Examples whose class has been seen before, so that they can be right."""


class TabularTrainer:
    """Trains a network to classify each example of a random task from those before it; see `srwm.runs.loop`.

    Args:
        config: the recipe.
        device: where to train.
        processes: this process among those of a `torchrun`; each draws every batch and takes its share of the tasks.

    Attributes:
        model: the network.
    """

    def __init__(self, config: TabularConfig, device: torch.device, processes: Processes | None = None) -> None:
        self.config, self.device, self.processes = config, device, processes or Processes()
        torch.manual_seed(config.seed)
        self.model = build_network(config).to(device)
        self.optimizer = ScheduledAdam(
            self.model,
            config.optimizer,
            hidden_size=config.model.hidden_size,
            total_steps=config.train.total_steps,
            device=device,
            processes=self.processes,
        )
        self._sums = torch.zeros(3, dtype=torch.float64, device=device)  # loss, right answers, all answers

    def train_step(self, step: int) -> None:
        """Do one step."""
        tasks = batch_of(self.config, TRAINING, step)
        own = Tasks(*(part[self.processes.rank :: self.processes.count] for part in tasks))
        self.optimizer.prepare([step])
        self.optimizer.set_rate(step)
        self.optimizer.zero_grad()
        answers = answer(self.model, own, projection_generator(self.config.seed, TRAINING, step))
        labels = own.labels.to(self.device)[answers.asked]
        losses = F.cross_entropy(answers.scores[answers.asked], labels, reduction="sum")
        # Of all tasks of the step, whichever of them this process has, about as many can be answered.
        loss = losses / answers.asked.sum()
        loss.backward()
        self.optimizer.step(loss, torch.tensor(step, device=self.device))
        right = (answers.scores.argmax(dim=-1)[answers.asked] == labels).sum()
        self._sums += torch.stack([each.detach().double() for each in (losses, right, answers.asked.sum())])

    def metrics(self) -> dict[str, float]:
        """Loss and accuracy since the last call; every task is new."""
        loss, right, asked = take_sums(self._sums, self.optimizer.watch, self.processes)
        return {
            "train/loss": loss / max(asked, 1),
            "train/accuracy": right / max(asked, 1),
            "train/gradient_norm": float(self.optimizer.watch.grad_norm),
        }

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold."""
        return training_tensors(self.model, self.optimizer.tensors, self._sums)

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        load_training_tensors(groups, self.model, self.optimizer.tensors, self._sums)


def batch_of(config: TabularConfig, stream: int, step: int) -> Tasks:
    """Draw the tasks of a step; every fourth batch has fewer and longer ones."""
    prior, size = config.prior, config.train.batch_size
    is_long = step % 4 == 3
    examples = prior.long_examples if is_long else prior.examples
    batch_size = max(1, size * prior.examples // examples) if is_long else size
    return draw_tasks(prior, seed=config.seed, stream=stream, step=step, batch_size=batch_size, examples=examples)


def projection_generator(seed: int, stream: int, step: int) -> torch.Generator:
    """Make the generator of the projections of a step."""
    key = stream_key(seed, _PROJECTIONS + stream, torch.tensor(step))
    return torch.Generator().manual_seed(int(key))


def answer(model: TabularModel, tasks: Tasks, generator: torch.Generator) -> Answers:
    """Let a network classify each example of a batch of tasks, from those before it."""
    device = model.sequence.input_projection.weight.device
    x, labels = tasks.x.to(device), tasks.labels.to(device)
    scores, _ = model(x, labels, model.tasks_state(tasks, generator))
    seen = F.one_hot(labels, model.classes).cumsum(dim=1)
    asked = seen.gather(2, labels[..., None])[..., 0] > 1
    return Answers(scores, asked)
