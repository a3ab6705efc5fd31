"""Training on a language from top to bottom: steps, test; and a step: sequences, answers, loss, weights."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.errors import InputError
from srwm.runs.adam import ScheduledAdam
from srwm.runs.cuda_graph import capture
from srwm.runs.devices import set_deterministic, set_tf32
from srwm.runs.loop import LoopOptions, Trainer
from srwm.runs.processes import Processes
from srwm.runs.training import Run

from .config import LanguagesConfig
from .curriculum import Curriculum
from .evaluation import TRAINING, VALIDATION, LanguagesEvaluation, evaluate
from .loading import build_network
from .network import StateTracker
from .registry import find_task
from .state_noise import read_with_noise
from .tasks import IGNORED, Sequences, draw_batch, lengths_between

AHEAD = 64
"""Steps whose sequences are drawn at once: a few larger operations instead of many small ones."""


def train(config: LanguagesConfig, run: Run) -> None:
    """Train a recipe, and test its last weights, or those that were best in a validation."""
    set_deterministic(config.train.deterministic)
    trainer = LanguagesTrainer(config, run.device, run.processes)
    run.steps(trainer, loop_options(config))

    def test() -> LanguagesEvaluation:
        task, lengths = find_task(config.task, test=True), config.task.test_lengths
        return evaluate(trainer.model, task, lengths, sequences=config.train.test_sequences, device=run.device)

    run.finish(trainer.model, test, memory=config.model.memory, task=config.task.name)


def loop_options(config: LanguagesConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    train = config.train
    return LoopOptions(
        total_steps=train.total_steps,
        log_every=train.log_every,
        # Where nothing is validated, every stop would only cost a line.
        validate_every=train.validate_every if train.validation_lengths else train.total_steps,
        checkpoint_every=train.checkpoint_every,
        score="validation/sequence_accuracy" if train.validation_lengths else None,
        stop_at=train.stop_at,
        items_per_step=train.batch_size,
        item="sequences",
        shown=("train/loss", "train/accuracy", "train/sequence_accuracy", "validation/sequence_accuracy"),
    )


class LanguagesTrainer(Trainer):
    """Trains a network to answer at every position; see `srwm.runs.loop.Checkpointed`.

    On a GPU the step is one CUDA graph; sequences are then filled up to the longest of the training, so that all steps
    have one shape.

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
        self._validation_task = find_task(config.task, test=True) if config.train.validation_lengths else self.task
        self.lengths = lengths_between(self.task, config.task.shortest, config.task.longest)
        torch.manual_seed(config.seed)
        self.model: StateTracker = build_network(config).to(device)
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + self.processes.rank)
        # Loss, positions that are right, all positions, sequences that are right, all sequences.
        rates = config.optimizer.rates(config.train.total_steps)
        self.optimizer = ScheduledAdam(self.model, config.optimizer, rates, sums=5, processes=self.processes)
        self._curriculum = Curriculum(config.task.curriculum, self.lengths, self.processes, device)
        self._step_number = torch.zeros((), device=device, dtype=torch.int64)
        self._next = -1  # the step that it holds, if known
        self._asked = torch.zeros(AHEAD, device=device)
        shape = (AHEAD, config.train.batch_size // self.processes.count, self.lengths[-1])
        self._ahead = Sequences(*(torch.zeros(shape, device=device, dtype=torch.int64) for _ in range(2)))
        self._drawn = -1
        if device.type == "cuda":
            self._draw_ahead(0)
        self._update = capture(self._update_weights, self, device)

    def draw(self, step: int) -> Sequences:
        """Draw the whole batch of a step, a function of the seed and the step."""
        drawn = self._draw(torch.tensor([step], device=self.device))
        return Sequences(drawn.symbols[0], drawn.targets[0])

    def train_step(self, step: int) -> None:
        """Do one step; on a GPU it may still be under way afterwards."""
        if step - step % AHEAD != self._drawn:
            if step % AHEAD == 0:
                self._curriculum.go_on()
            self._draw_ahead(step - step % AHEAD)
        if step != self._next:
            self._step_number.fill_(step)
        self._next = step + 1
        self.optimizer.go_to(step)
        self._update()

    def metrics(self) -> dict[str, float]:
        """Loss, accuracy and share of sequences that are right at every position, since the last call."""
        loss, correct, asked, whole, sequences = self.optimizer.take_sums()
        return {
            "train/loss": loss / max(asked, 1),
            "train/accuracy": correct / max(asked, 1),
            "train/sequence_accuracy": whole / max(sequences, 1),
            "train/gradient_norm": float(self.optimizer.gradient_norm),
            **self._curriculum.metrics(),
        }

    def validate(self) -> dict[str, float]:
        """Share of right sequences at each length of the validation, and the mean; always the same sequences."""
        train = self.config.train
        found = evaluate(
            self.model,
            self._validation_task,
            train.validation_lengths,
            sequences=train.validation_sequences,
            rng_stream=VALIDATION,
            device=self.device,
        )
        each = {f"validation/{row.lengths}": row.whole for row in found.by_length}
        return {"validation/sequence_accuracy": found.accuracy, **each}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold."""
        return {**self.optimizer.tensors(), **self._curriculum.tensors()}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint, in place: a captured step holds on to the tensors' memory."""
        self.optimizer.load_tensors(groups)
        self._curriculum.load_tensors(groups)
        self._next = self._drawn = -1

    def _update_weights(self) -> None:
        """One step, from sequences to new weights, without looking at any value on a GPU."""
        at = (self._step_number % AHEAD).reshape(1)
        symbols, targets = (part.index_select(0, at)[0] for part in self._ahead)
        if self.device.type != "cuda":
            longest = int((targets != IGNORED).sum(dim=1).max())
            symbols, targets = symbols[:, :longest], targets[:, :longest]
        noise, every = self.config.train.state_noise, self.config.train.state_noise_every
        if noise:
            scores = read_with_noise(self.model, symbols, noise=noise, every=every)
        else:
            scores, _ = self.model(symbols)
        total = F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum")
        # The mean over the positions of the whole batch, however many of them this process has.
        loss = total / self._asked.index_select(0, at)[0]
        self.optimizer.zero_grad()
        (loss * self.processes.count).backward()
        self.optimizer.step(loss, self._step_number)
        self._count(total.detach(), scores.detach(), targets)
        self._step_number.add_(1)

    def _count(self, loss: Tensor, scores: Tensor, targets: Tensor) -> None:
        """Add up what `metrics` is made of, without looking at a value."""
        asked = targets != IGNORED
        right = (scores.argmax(dim=-1) == targets) & asked
        whole = (right.sum(dim=1) == asked.sum(dim=1)).sum()
        sequences = torch.full((), len(targets), device=self.device)
        counts = (loss, right.sum(), asked.sum(), whole, sequences)
        self.optimizer.sums += torch.stack([each.double() for each in counts])
        self._curriculum.count(whole, sequences)

    def _draw(self, steps: Tensor) -> Sequences:
        return draw_batch(
            self.task,
            steps,
            self._curriculum.lengths,
            seed=self.config.seed,
            rng_stream=TRAINING,
            batch_size=self.config.train.batch_size,
            same_length=self.config.task.same_length,
            longest=self.lengths[-1],
        )

    def _draw_ahead(self, first: int) -> None:
        """Draw this process's rows of the steps from `first` on."""
        drawn = self._draw(torch.arange(first, first + AHEAD, device=self.device))
        self._asked.copy_((drawn.targets != IGNORED).sum(dim=(1, 2)))
        for whole, own in zip(drawn, self._ahead, strict=True):
            own.copy_(whole[:, self.processes.rank :: self.processes.count])
        self._drawn = first
