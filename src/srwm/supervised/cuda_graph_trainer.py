"""What every training on drawn episodes has in common: Adam, the guard against NaN, sums, and one recorded step."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from srwm.errors import InputError
from srwm.runs.adam import adam_state
from srwm.runs.cuda_graph import record
from srwm.runs.devices import load_rng_tensors, rng_tensors, set_tf32
from srwm.runs.gradient_watch import GradientWatch
from srwm.runs.processes import Processes, average_gradients
from srwm.runs.tensor_file import restore_group

from .config import OptimizerConfig, TrainConfig
from .schedule import learning_rate

AHEAD = 64
"""Steps whose episodes are drawn at once: a few larger operations instead of many small ones."""


class CudaGraphTrainer(ABC):
    """A training whose step, from drawing to Adam, is one CUDA graph on a GPU; see `srwm.runs.loop.Trainer`.

    A subclass makes its data ready, then calls `start`. It says what is drawn for a step (`draw`), what its loss is
    (`loss`), and what the sums mean that `loss` adds up (`summarise`); `validate` and `notice` are its own.

    Args:
        model: the network, on the device.
        optimizer: Adam and its learning rate.
        train: how long and how much at once.
        hidden_size: width of the network, for the schedule.
        sums: how many numbers `loss` adds up.
        device: where to train.
        processes: this process among those of a `torchrun`.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: OptimizerConfig,
        train: TrainConfig,
        *,
        hidden_size: int,
        sums: int,
        device: torch.device,
        processes: Processes,
    ) -> None:
        self.model, self.device, self.processes = model, device, processes
        self._optimizer_config, self._train_config, self._hidden_size = optimizer, train, hidden_size
        set_tf32(train.precision != "float32")
        # On a GPU the rate lives there, so that the recorded step reads it.
        self._rate = torch.zeros((), device=device)
        self.optimizer = torch.optim.Adam(
            model.parameters(),
            lr=self._rate if device.type == "cuda" else optimizer.learning_rate,
            betas=(optimizer.beta1, optimizer.beta2),
            eps=optimizer.eps,
            fused=True,
            capturable=device.type == "cuda",
        )
        self._adam = adam_state(self.optimizer, model.named_parameters())
        self._watch = GradientWatch(model.named_parameters(), device)
        self._sums = torch.zeros(2 + sums, device=device, dtype=torch.float64)  # loss, steps, and the subclass's
        self.step_number = torch.zeros((), device=device, dtype=torch.int64)
        self._rates = torch.zeros(AHEAD, device=device)
        self._ahead: list[Tensor] = []
        self._drawn = -1
        self._next = -1  # the step that `step_number` holds, if known
        self._replay: Callable[[], None] | None = None

    @abstractmethod
    def draw(self, steps: Tensor) -> Sequence[Tensor]:
        """Draw the whole batch of each of some steps: tensors [steps, batch, ...], a pure function of the steps."""

    @abstractmethod
    def loss(self, batch: Sequence[Tensor], first: int) -> tuple[Tensor, Tensor]:
        """The mean loss of rows of a batch, and the sums over them to keep [sums]; no value may be looked at.

        Args:
            batch: rows of what `draw` gave for one step.
            first: place of the first row in the whole batch.
        """

    @abstractmethod
    def summarise(self, sums: Sequence[float], steps: int) -> dict[str, float]:
        """Turn the sums over all rows of some steps into numbers with names."""

    def start(self) -> None:
        """Draw the first episodes and, on a GPU, record the step."""
        self._draw_ahead(0)
        if self.device.type == "cuda":
            self._replay = self._record()

    def encoder_autocast(self) -> torch.autocast:
        """The arithmetic of the encoder, to be used as `with`: bfloat16 on a GPU that is told so, else float32.

        The self-modifying layers keep float32. On a CPU bfloat16 would be slower than float32, not faster.
        """
        halved = self.device.type == "cuda" and self._train_config.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=halved)

    def train_step(self, step: int) -> None:
        """Do one step; on a GPU it may still be under way afterwards."""
        if step - step % AHEAD != self._drawn:
            self._draw_ahead(step - step % AHEAD)
        if step != self._next:
            self.step_number.fill_(step)
        self._next = step + 1
        if self._replay is not None:
            self._replay()
        else:
            for group in self.optimizer.param_groups:
                group["lr"] = self._rate_of(step)
            self._run()

    def metrics(self) -> dict[str, float]:
        """Mean loss since the last call, what the subclass makes of its sums, and the norm of the last gradient."""
        sums = self._sums.clone()
        if self.processes.count > 1:
            torch.distributed.all_reduce(sums)
        # After the exchange, in which all processes must take part.
        self._watch.check()
        loss, counted, *own = sums.tolist()
        self._sums.zero_()
        return {
            "train/loss": loss / max(counted, 1),
            **self.summarise(own, max(round(counted / self.processes.count), 1)),
            "train/gradient_norm": float(self._watch.grad_norm),
        }

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
        restore_group(self.model.state_dict(), groups, "weights")
        restore_group(self._adam, groups, "optimizer")
        restore_group({"sums": self._sums}, groups, "metrics")
        load_rng_tensors(groups.get("rng", {}))
        self._next = -1

    def _run(self) -> None:
        """One step, from episodes to new weights, without looking at any value."""
        at = (self.step_number % AHEAD).reshape(1)
        batch = [buffer.index_select(0, at)[0] for buffer in self._ahead]
        if self.device.type == "cuda":
            self._rate.copy_(self._rates.index_select(0, at)[0])
        parts, place = self._train_config.grad_accum_steps, self.processes
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=self.device)
        for part, rows in enumerate(zip(*(field.chunk(parts) for field in batch), strict=True)):
            loss, sums = self.loss(rows, (part * place.count + place.rank) * len(rows[0]))
            (loss / parts).backward()
            total = total + loss.detach() / parts
            self._sums[2:].add_(sums)
        average_gradients(self.model.parameters(), place)
        bad = self._watch.observe(self.step_number, total)
        if self._optimizer_config.clip_norm is not None:
            self._clip(self._optimizer_config.clip_norm)
        # Adam leaves everything as it was where a gradient is not finite; `metrics` then stops the run.
        self.optimizer.found_inf = bad  # type: ignore[attr-defined]
        self.optimizer.step()
        self._sums[0].add_(total)
        self._sums[1].add_(1)
        self.step_number.add_(1)

    def _draw_ahead(self, first: int) -> None:
        """Draw this process's rows of the steps from `first` on, and note their learning rates."""
        drawn = self.draw(torch.arange(first, first + AHEAD, device=self.device))
        # The processes share each part, so that its batch statistics are those of the same part in one process.
        shares = (self._train_config.grad_accum_steps, self.processes.count, -1)
        own = [field.unflatten(1, shares)[:, :, self.processes.rank].flatten(1, 2) for field in drawn]
        if self._ahead:
            torch._foreach_copy_(self._ahead, own)
        else:
            self._ahead = [field.clone() for field in own]
        self._rates.copy_(torch.tensor([self._rate_of(step) for step in range(first, first + AHEAD)]))
        self._drawn = first

    def _rate_of(self, step: int) -> float:
        total_steps = self._train_config.total_steps
        return learning_rate(step, self._optimizer_config, hidden_size=self._hidden_size, total_steps=total_steps)

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


def check_shares(batch_size: int, grad_accum_steps: int, processes: Processes) -> None:
    """Refuse a batch that cannot be cut into equal shares."""
    if batch_size % (processes.count * grad_accum_steps):
        raise InputError(
            f"batch_size={batch_size} cannot be shared by {processes.count} processes in {grad_accum_steps} parts "
            "each; choose a multiple"
        )
