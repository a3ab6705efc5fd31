"""One run of training on a language, step by step, under the loop of `srwm.runs`."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.errors import InputError
from srwm.runs.adam import adam_state
from srwm.runs.devices import load_rng_tensors, rng_tensors, set_tf32
from srwm.runs.gradient_watch import GradientWatch
from srwm.runs.processes import Processes, average_gradients
from srwm.runs.tensor_file import restore_group

from .config import LanguagesConfig
from .evaluation import TRAINING
from .network import StateTracker, build_network
from .registry import find_task
from .tasks import IGNORED, Sequences, draw_lengths, draw_sequences, generator_of


class LanguagesTrainer:
    """Trains a network to answer at every position; see `srwm.runs.loop.Trainer`.

    Args:
        config: the recipe.
        device: where to train.
        processes: this process among those of a `torchrun`.

    Attributes:
        model: the network.

    Raises:
        InputError: if there is no such task, the network cannot be built, or the batch cannot be shared out.
    """

    def __init__(self, config: LanguagesConfig, device: torch.device, processes: Processes | None = None) -> None:
        self.config, self.device, self.processes = config, device, processes or Processes()
        if config.train.batch_size % self.processes.count:
            raise InputError(
                f"batch_size={config.train.batch_size} cannot be shared by {self.processes.count} processes; choose a "
                "multiple"
            )
        set_tf32(False)
        self.task = find_task(config.task)
        torch.manual_seed(config.seed)
        self.model: StateTracker = build_network(config).to(device)
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + self.processes.rank)
        adam = config.optimizer
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=adam.rate(0), betas=(adam.beta1, adam.beta2), eps=adam.eps, fused=True
        )
        self._adam = adam_state(self.optimizer, self.model.named_parameters())
        self._watch = GradientWatch(self.model.named_parameters(), device)
        # Loss, positions that are right, all positions, sequences that are right, all sequences.
        self._sums = torch.zeros(5, device=device, dtype=torch.float64)

    def draw(self, step: int) -> Sequences:
        """Draw the whole batch of a step, a function of the seed and the step."""
        task, generator = self.config.task, generator_of(self.config.seed, TRAINING, step)
        lengths = draw_lengths(
            self.task,
            generator,
            self.config.train.batch_size,
            task.shortest,
            task.longest,
            same=task.same_length,
        )
        return draw_sequences(self.task, generator, lengths)

    def train_step(self, step: int) -> None:
        """Do one step; on a GPU it may still be under way afterwards."""
        batch, place = self.draw(step), self.processes
        asked = int((batch.targets != IGNORED).sum())
        own = slice(place.rank, None, place.count)
        symbols, targets = batch.symbols[own].to(self.device), batch.targets[own].to(self.device)
        scores, _ = self.model(symbols)
        # The mean over the positions of the whole batch, however many of them this process has.
        loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum") / asked
        self.optimizer.zero_grad()
        (loss * place.count).backward()
        average_gradients(self.model.parameters(), place)
        bad = self._watch.observe(torch.tensor(step, device=self.device), loss)
        if self.config.optimizer.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimizer.clip_norm)
        self.optimizer.param_groups[0]["lr"] = self.config.optimizer.rate(step)
        # Adam leaves everything as it was where a gradient is not finite; `metrics` then stops the run.
        self.optimizer.found_inf = bad  # type: ignore[attr-defined]
        self.optimizer.step()
        self._count(loss.detach() * targets.new_tensor(asked), scores.detach(), targets)

    def metrics(self) -> dict[str, float]:
        """Loss, accuracy and share of sequences that are right at every position, since the last call."""
        sums = self._sums.clone()
        if self.processes.count > 1:
            torch.distributed.all_reduce(sums)
        # After the exchange, in which all processes must take part.
        self._watch.check()
        loss, right, asked, whole, sequences = sums.tolist()
        self._sums.zero_()
        return {
            "train/loss": loss / max(asked, 1),
            "train/accuracy": right / max(asked, 1),
            "train/sequence_accuracy": whole / max(sequences, 1),
            "train/gradient_norm": float(self._watch.grad_norm),
        }

    def validate(self, step: int) -> dict[str, float]:
        """There is no validation: every batch is new, and the last weights are what a run comes to."""
        return {}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold."""
        return {
            "weights": dict(self.model.state_dict()),
            "optimizer": dict(self._adam),
            "metrics": {"sums": self._sums},
            "rng": rng_tensors(),
        }

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        restore_group(self.model.state_dict(), groups, "weights")
        restore_group(self._adam, groups, "optimizer")
        restore_group({"sums": self._sums}, groups, "metrics")
        load_rng_tensors(groups.get("rng", {}))

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """There is nothing to tell: the numbers say it."""
        return None

    def _count(self, loss: Tensor, scores: Tensor, targets: Tensor) -> None:
        """Add up what `metrics` is made of, without looking at a value."""
        asked = targets != IGNORED
        right = (scores.argmax(dim=-1) == targets) & asked
        is_whole = right.sum(dim=1) == asked.sum(dim=1)
        sequences = torch.tensor(len(targets), device=self.device)
        self._sums += torch.stack(
            [each.double() for each in (loss, right.sum(), asked.sum(), is_whole.sum(), sequences)]
        )
