"""Adam for a training: the schedule of its rate, clipping, the guard against NaN, running sums, and checkpoints."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from .devices import load_rng_tensors, rng_tensors
from .gradient_watch import GradientWatch
from .processes import Processes, average_gradients
from .tensor_file import restore_group

__all__ = ["AdamConfig", "ScheduledAdam", "adam_state"]

AHEAD = 64
"""Steps whose rates are brought to a GPU at once."""


@runtime_checkable
class AdamConfig(Protocol):
    """What a recipe says of Adam beside its learning rate."""

    @property
    def beta1(self) -> float:
        """Adam's first decay."""

    @property
    def beta2(self) -> float:
        """Adam's second decay."""

    @property
    def eps(self) -> float:
        """Adam's epsilon."""

    @property
    def clip_norm(self) -> float | None:
        """Largest norm of the gradient; None for no clipping."""


class ScheduledAdam:
    """Adam of a network whose steps follow a schedule, and whose `step` can be captured in a CUDA graph.

    Args:
        model: the network, on its device.
        config: of Adam.
        rate: the learning rate of a step, counted from 0.
        sums: how many numbers the training adds up between two lines of metrics.
        processes: this process among those of a `torchrun`; gradients are averaged over all.

    Attributes:
        adam: the optimiser of torch.
        rate: as given.
        rate_on_device: on a GPU the rate of the step at hand.
        sums: what the training adds up, float64 [sums].
    """

    def __init__(
        self,
        model: nn.Module,
        config: AdamConfig,
        rate: Callable[[int], float],
        *,
        sums: int,
        processes: Processes | None = None,
    ) -> None:
        self.rate = rate
        self._model, self._clip_norm, self._processes = model, config.clip_norm, processes or Processes()
        device = next(model.parameters()).device
        self._on_gpu = device.type == "cuda"
        # On a GPU the rate lives there, so that the captured step reads it.
        self.rate_on_device = torch.zeros((), device=device)
        self._rates, self._first = torch.zeros(AHEAD, device=device), -1
        self.adam = torch.optim.Adam(
            model.parameters(),
            lr=self.rate_on_device if self._on_gpu else rate(0),
            betas=(config.beta1, config.beta2),
            eps=config.eps,
            fused=True,
            capturable=self._on_gpu,
        )
        self._state = adam_state(self.adam, model.named_parameters())
        self._watch = GradientWatch(model.named_parameters(), device)
        self.sums = torch.zeros(sums, device=device, dtype=torch.float64)

    def go_to(self, step: int) -> None:
        """Set the rate of a step; on a GPU `step` then finds it by itself."""
        if not self._on_gpu:
            for group in self.adam.param_groups:
                group["lr"] = self.rate(step)
        elif self._first != step - step % AHEAD:
            self._first = step - step % AHEAD
            self._rates.copy_(torch.tensor([self.rate(each) for each in range(self._first, self._first + AHEAD)]))

    def zero_grad(self) -> None:
        """Forget the gradients of the step before."""
        self.adam.zero_grad(set_to_none=True)

    def step(self, loss: Tensor, number: Tensor) -> None:
        """From gradients to new weights, without looking at a value.

        Args:
            loss: of this process.
            number: of the step, on the device.
        """
        if self._on_gpu:
            self.rate_on_device.copy_(self._rates.index_select(0, (number % AHEAD).reshape(1))[0])
        if self._processes.count > 1:
            average_gradients(self._model.parameters(), self._processes)
        bad = self._watch.observe(number, loss)
        if self._clip_norm is not None:
            scale = (self._clip_norm / (self.gradient_norm + 1e-6)).clamp(max=1.0)
            torch._foreach_mul_([p.grad for p in self._model.parameters() if p.grad is not None], scale)
        # Adam leaves everything as it was where a gradient is not finite; the next line of metrics stops the run.
        self.adam.found_inf = bad  # type: ignore[attr-defined]
        self.adam.step()

    @property
    def gradient_norm(self) -> Tensor:
        """The norm of the last gradient before it was clipped, on the device."""
        return self._watch.grad_norm

    def take_sums(self) -> list[float]:
        """Give the sums over all processes and set them back to zero; waits for the device.

        Raises:
            NonFiniteError: if a loss or gradient was not finite.
        """
        total = self.sums.clone()
        if self._processes.count > 1:
            torch.distributed.all_reduce(total)
        # After the exchange, in which all processes must take part.
        self._watch.check()
        self.sums.zero_()
        return [float(value) for value in total.tolist()]

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Give everything that a checkpoint must hold, the network's weights included."""
        return {
            "weights": dict(self._model.state_dict()),
            "optimizer": dict(self._state),
            "metrics": {"sums": self.sums},
            "rng": rng_tensors(),
        }

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint, in place: a CUDA graph holds on to the tensors' memory.

        Raises:
            InputError: if it is that of another model.
        """
        restore_group(self._model.state_dict(), groups, "weights")
        restore_group(self._state, groups, "optimizer")
        restore_group({"sums": self.sums}, groups, "metrics")
        load_rng_tensors(groups.get("rng", {}))


def adam_state(optimizer: torch.optim.Adam, named_parameters: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """Make the state that a fused Adam would make at its first step, and give it names.

    Returns:
        The tensors of the state itself, named `NAME/exp_avg`, `NAME/exp_avg_sq` and `NAME/step`; copying into them
        restores a checkpoint.
    """
    tensors: dict[str, Tensor] = {}
    for name, parameter in named_parameters:
        state = optimizer.state[parameter]
        state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
        state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        tensors.update({f"{name}/{part}": tensor for part, tensor in state.items()})
    return tensors
