"""Adam for a training on labelled images: the schedule of its rate, clipping, and the guard against NaN."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from srwm.runs.adam import adam_state
from srwm.runs.gradient_watch import GradientWatch
from srwm.runs.processes import Processes, average_gradients

from .config import OptimizerConfig

__all__ = ["ScheduledAdam", "learning_rate"]


class ScheduledAdam:
    """Adam whose steps follow a schedule, and whose `step` can be captured in a CUDA graph.

    Args:
        model: the network, on the device.
        config: Adam and its learning rate.
        hidden_size: width of the network, for the schedule.
        total_steps: steps of the training, for the schedule.
        device: where the network is.
        processes: this process among those of a `torchrun`; gradients are averaged over all.

    Attributes:
        adam: the optimiser of torch.
        rates: the rates of the coming steps, on the device; there also that of the step at hand, `rate_on_device`.
        tensors: the state of Adam by name, for checkpoints.
        watch: the guard against NaN.
    """

    def __init__(
        self,
        model: nn.Module,
        config: OptimizerConfig,
        *,
        hidden_size: int,
        total_steps: int,
        device: torch.device,
        processes: Processes,
    ) -> None:
        self._model, self._config, self._processes = model, config, processes
        self._hidden_size, self._total_steps = hidden_size, total_steps
        self._on_gpu = device.type == "cuda"
        # On a GPU the rate lives there, so that the captured step reads it.
        self.rate_on_device = torch.zeros((), device=device)
        self.rates = torch.zeros(0, device=device)
        self.adam = torch.optim.Adam(
            model.parameters(),
            lr=self.rate_on_device if self._on_gpu else config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.eps,
            fused=True,
            capturable=self._on_gpu,
        )
        self.tensors = adam_state(self.adam, model.named_parameters())
        self.watch = GradientWatch(model.named_parameters(), device)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        return learning_rate(step, self._config, hidden_size=self._hidden_size, total_steps=self._total_steps)

    def prepare(self, steps: Sequence[int]) -> None:
        """Bring the rates of the coming steps to the device; each step is found at its number modulo theirs."""
        rates = torch.tensor([self.rate(step) for step in steps])
        if len(self.rates):
            self.rates.copy_(rates)
        else:
            self.rates = rates.to(self.rate_on_device.device)

    def set_rate(self, step: int) -> None:
        """Set the rate of a step on a CPU; on a GPU `step` finds it by itself."""
        if not self._on_gpu:
            for group in self.adam.param_groups:
                group["lr"] = self.rate(step)

    def zero_grad(self) -> None:
        """Forget the gradients of the step before."""
        self.adam.zero_grad(set_to_none=True)

    def step(self, loss: Tensor, number: Tensor) -> None:
        """From gradients to new weights, without looking at a value."""
        if self._on_gpu:
            self.rate_on_device.copy_(self.rates.index_select(0, (number % len(self.rates)).reshape(1))[0])
        if self._processes.count > 1:
            average_gradients(self._model.parameters(), self._processes)
        bad = self.watch.observe(number, loss)
        if self._config.clip_norm is not None:
            scale = (self._config.clip_norm / (self.watch.grad_norm + 1e-6)).clamp(max=1.0)
            torch._foreach_mul_([p.grad for p in self._model.parameters() if p.grad is not None], scale)
        # Adam leaves everything as it was where a gradient is not finite; the next line of metrics stops the run.
        self.adam.found_inf = bad  # type: ignore[attr-defined]
        self.adam.step()


def learning_rate(step: int, config: OptimizerConfig, *, hidden_size: int, total_steps: int) -> float:
    """The learning rate of a step, counted from 0.

    Example:
        >>> noam = OptimizerConfig(schedule="noam", warmup_steps=5000)
        >>> f"{learning_rate(4999, noam, hidden_size=256, total_steps=600_000):.3g}"
        '0.000884'
    """
    number = step + 1
    if config.schedule == "noam":
        # Vaswani et al. (2017); the authors call it "warmup".
        return float(hidden_size**-0.5 * min(number**-0.5, number * config.warmup_steps**-1.5))
    if config.schedule == "cosine":
        if number <= config.warmup_steps:
            return config.learning_rate * number / config.warmup_steps
        progress = (number - config.warmup_steps) / max(total_steps - config.warmup_steps, 1)
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    return config.learning_rate
