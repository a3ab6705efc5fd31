"""A network that Adam trains, for an experiment that needs nothing special: updates, means, and checkpoints."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from .adam import ScheduledAdam
from .processes import Processes

__all__ = ["AdamTraining"]


class _Defaults(NamedTuple):
    """Adam as torch has it."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    clip_norm: float | None = None


class AdamTraining(ScheduledAdam):
    """A network, its Adam, and the means of what is measured on the way; see `srwm.runs.loop.Checkpointed`.

    Args:
        model: the network, on its device.
        learning_rate: of Adam.
        means: names of what `update` is given beside the loss.
        processes: this process among those of a `torchrun`; gradients are averaged over all.

    Example:
        >>> training = AdamTraining(nn.Linear(3, 1), 1e-2, means=("accuracy",))
        >>> loss = training.model(torch.ones(2, 3)).square().mean()
        >>> training.update(loss, step=0, accuracy=torch.tensor(0.5))
        >>> training.metrics()["train/accuracy"]
        0.5
    """

    def __init__(
        self,
        model: nn.Module,
        learning_rate: float,
        *,
        means: tuple[str, ...] = (),
        processes: Processes | None = None,
    ) -> None:
        self.model, self._means = model, ("loss", *means)
        sums = 1 + len(self._means)  # steps come first
        super().__init__(model, _Defaults(), lambda step: learning_rate, sums=sums, processes=processes)

    def update(self, loss: Tensor, step: int, **means: Tensor) -> None:
        """From a loss to new weights; on a GPU it may still be under way afterwards."""
        self.go_to(step)
        self.zero_grad()
        loss.backward()
        self.step(loss, torch.tensor(step, device=self.sums.device))
        numbers = {"loss": loss, **means}
        found = [torch.ones_like(loss), *(numbers[name].detach() for name in self._means)]
        self.sums += torch.stack([each.double() for each in found])

    def metrics(self) -> dict[str, float]:
        """The means since the last call, and the norm of the last gradient; waits for the device.

        Raises:
            NonFiniteError: if a loss or gradient was not finite.
        """
        steps, *sums = self.take_sums()
        means = {f"train/{name}": total / max(steps, 1) for name, total in zip(self._means, sums, strict=True)}
        return {**means, "train/gradient_norm": float(self.gradient_norm)}
