"""One run of few-shot training, step by step, under the loop of `srwm.runs`."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.data import Episodes, ImageSet, check_enough, draw_episodes
from srwm.errors import InputError
from srwm.runs.adam import adam_state
from srwm.runs.cuda_graph import record
from srwm.runs.devices import load_rng_tensors, rng_tensors, set_tf32
from srwm.runs.gradient_watch import GradientWatch
from srwm.runs.processes import Processes, average_gradients

from .augment import jitter
from .config import FewShotConfig
from .evaluation import embed, right_answers
from .model import to_unit
from .saved import build_model, load_weights
from .schedule import learning_rate

TRAINING, VALIDATION, TEST, AUGMENTATION = range(4)
"""Streams of random numbers, kept apart."""
_AHEAD = 64
"""Steps whose episodes are drawn at once: a few larger operations instead of many small ones."""


class FewShotTrainer:
    """Trains a model on episodes; see `srwm.runs.loop.Trainer` for the contract.

    On a GPU the whole step, from drawing images to Adam, is one CUDA graph.

    Args:
        config: the recipe.
        training: images to train on.
        validation: images of other classes, to choose the best checkpoint by.
        device: where to train.
        processes: this process among those of a `torchrun`.

    Attributes:
        model: the network.
    """

    def __init__(
        self,
        config: FewShotConfig,
        training: ImageSet,
        validation: ImageSet,
        device: torch.device,
        processes: Processes | None = None,
    ) -> None:
        task, train = config.task, config.train
        self.config = config
        self.device = device
        self.processes = processes or Processes()
        if train.batch_size % (self.processes.count * train.accumulate):
            raise InputError(
                f"batch_size={train.batch_size} cannot be shared by {self.processes.count} processes in "
                f"{train.accumulate} parts each; choose a multiple"
            )
        check_enough(training, task.ways, task.shots, task.queries)
        check_enough(validation, task.ways, task.shots, 1)
        set_tf32(train.precision != "float32")

        torch.manual_seed(config.seed)
        channels, height, width = training.images.shape[1:]
        self.model = build_model(config, (channels, height, width)).to(device)
        # The weights are the same in every process; what is dropped is not.
        torch.manual_seed(config.seed + 1 + self.processes.rank)
        self.training = training.to(device)
        self.validation = validation.to(device)
        # On a GPU the rate lives there, so that the recorded step reads it.
        self._rate = torch.zeros((), device=device)
        optimizer = config.optimizer
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=self._rate if device.type == "cuda" else optimizer.learning_rate,
            betas=(optimizer.beta1, optimizer.beta2),
            eps=optimizer.eps,
            fused=True,
            capturable=device.type == "cuda",
        )
        self._adam = adam_state(self.optimizer, self.model.named_parameters())
        self._watch = GradientWatch(self.model.named_parameters(), device)
        self._sums = torch.zeros(3, device=device, dtype=torch.float64)  # loss, right answers, steps
        self._step = torch.zeros((), device=device, dtype=torch.int64)
        self._rates = torch.zeros(_AHEAD, device=device)
        self._ahead = self._draw(0)
        self._drawn = 0
        self._next = -1  # the step that `_step` holds on the device, if known
        self._replay = self._record() if device.type == "cuda" else None

    def train_step(self, step: int) -> None:
        """Do one step; on a GPU it may still be under way afterwards."""
        first = step - step % _AHEAD
        if first != self._drawn:
            for buffer, drawn in zip(self._ahead, self._draw(first), strict=True):
                buffer.copy_(drawn)
            self._drawn = first
        if step != self._next:
            self._step.fill_(step)
        self._next = step + 1
        if self._replay is not None:
            self._replay()
        else:
            for group in self.optimizer.param_groups:
                group["lr"] = self._rate_of(step)
            self._run()

    def metrics(self) -> dict[str, float]:
        """Mean loss and accuracy since the last call, and the norm of the last gradient."""
        sums = self._sums.clone()
        if self.processes.count > 1:
            torch.distributed.all_reduce(sums)
        # After the exchange, in which all processes must take part.
        self._watch.check()
        loss, right, steps = sums.tolist()
        self._sums.zero_()
        asked = max(steps, 1) * self.config.train.batch_size * self.config.task.queries / self.processes.count
        return {
            "train/loss": loss / max(steps, 1),
            "train/accuracy": right / asked,
            "train/gradient_norm": float(self._watch.grad_norm),
        }

    def validate(self, step: int) -> dict[str, float]:
        """Accuracy on episodes of classes that are not trained on; always the same episodes."""
        task, train = self.config.task, self.config.train
        features = embed(self.model, self.validation)
        right = right_answers(
            self.model, self.validation, features, task, episodes=train.validation_episodes, seed=0, stream=VALIDATION
        )
        return {"validation/accuracy": float(right.mean())}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a checkpoint must hold."""
        return {
            "weights": dict(self.model.state_dict()),
            "optimizer": dict(self._adam),
            "metrics": {"sums": self._sums},
            "rng": rng_tensors(),
        }

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint, in place: a recorded step holds on to the tensors' memory."""
        load_weights(self.model, groups["weights"], "the checkpoint")
        with torch.no_grad():
            for name, tensor in self._adam.items():
                tensor.copy_(groups["optimizer"][name])
            self._sums.copy_(groups["metrics"]["sums"])
        load_rng_tensors(groups["rng"])
        self._next = -1

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """Say so when a run that should long have begun to learn is still at chance."""
        accuracy = metrics.get("validation/accuracy")
        patience = max(2000, self.config.train.total_steps // 20)
        if accuracy is None or step < patience or accuracy > 1.15 / self.config.task.ways:
            return None
        return (
            f"still at chance after {patience:,} steps: some seeds never leave it. More queries an episode "
            "(--set task.queries=15), a larger batch or another seed help most"
        )

    def _run(self) -> None:
        """One step, from episodes to new weights, without looking at any value."""
        at = (self._step % _AHEAD).reshape(1)
        episodes = Episodes(*(buffer.index_select(0, at)[0] for buffer in self._ahead))
        if self.device.type == "cuda":
            self._rate.copy_(self._rates.index_select(0, at)[0])
        parts = self.config.train.accumulate
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=self.device)
        for part, chunk in enumerate(zip(*(field.chunk(parts) for field in episodes), strict=True)):
            loss, right = self._loss(Episodes(*chunk), part)
            (loss / parts).backward()
            total = total + loss.detach() / parts
            self._sums[1].add_(right)
        average_gradients(self.model.parameters(), self.processes)
        bad = self._watch.observe(self._step, total)
        if self.config.optimizer.clip_norm is not None:
            self._clip(self.config.optimizer.clip_norm)
        # Adam leaves everything as it was where a gradient is not finite; `metrics` then stops the run.
        self.optimizer.found_inf = bad  # type: ignore[attr-defined]
        self.optimizer.step()
        self._sums[0].add_(total)
        self._sums[2].add_(1 / self.processes.count)
        self._step.add_(1)

    def _loss(self, episodes: Episodes, part: int) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy over the queries, and how many were answered right."""
        size = episodes.support.shape[1]
        images = to_unit(self.training.images[torch.cat([episodes.support, episodes.query], dim=1)])
        if self.config.task.augment:
            images = jitter(images, self.config.task.augment, self.config.seed, AUGMENTATION + part, self._step)
        # The vision part alone: the self-modifying layers keep float32.
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.train.precision == "bfloat16"):
            features = self.model.features(images).float()
        scores = self.model.answer(features[:, :size], episodes.support_labels, features[:, size:])
        loss = F.cross_entropy(scores.flatten(0, 1), episodes.query_labels.flatten())
        return loss, (scores.detach().argmax(dim=-1) == episodes.query_labels).sum()

    def _draw(self, first: int) -> Episodes:
        """Draw this process's rows of the episodes of the steps from `first` on, and note their learning rates."""
        task, train = self.config.task, self.config.train
        steps = torch.arange(first, first + _AHEAD, device=self.device)
        drawn = draw_episodes(
            self.training,
            steps,
            batch_size=train.batch_size,
            ways=task.ways,
            shots=task.shots,
            queries=task.queries,
            seed=self.config.seed,
            stream=TRAINING,
        )
        self._rates.copy_(torch.tensor([self._rate_of(step) for step in range(first, first + _AHEAD)]))
        return Episodes(*(field.chunk(self.processes.count, dim=1)[self.processes.rank] for field in drawn))

    def _rate_of(self, step: int) -> float:
        return learning_rate(
            step,
            self.config.optimizer,
            hidden_size=self.config.model.hidden_size,
            total_steps=self.config.train.total_steps,
        )

    def _clip(self, norm: float) -> None:
        scale = (norm / (self._watch.grad_norm + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_([p.grad for p in self.model.parameters() if p.grad is not None], scale)

    def _record(self) -> Callable[[], None]:
        """Record the step, and leave everything as it was before."""
        before = {
            group: {name: tensor.clone() for name, tensor in tensors.items()}
            for group, tensors in self.tensors().items()
        }
        replay = record(self._run)
        self.load_tensors(before)
        return replay
