"""A network that Adam trains, for an experiment that needs nothing special: updates, means, and checkpoints."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .adam import adam_state
from .gradient_watch import GradientWatch
from .processes import Processes, average_gradients
from .training_state import load_training_tensors, take_sums, training_tensors

__all__ = ["AdamTraining"]


class AdamTraining:
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
        self.model = model
        self.adam = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
        self._processes = processes or Processes()
        self._device = next(model.parameters()).device
        self._adam_state = adam_state(self.adam, model.named_parameters())
        self._watch = GradientWatch(model.named_parameters(), self._device)
        self._means = ("loss", *means)
        self._sums = torch.zeros(1 + len(self._means), dtype=torch.float64, device=self._device)  # steps come first

    def update(self, loss: Tensor, step: int, **means: Tensor) -> None:
        """From a loss to new weights; on a GPU it may still be under way afterwards."""
        self.adam.zero_grad()
        loss.backward()
        average_gradients(self.model.parameters(), self._processes)
        # Adam leaves everything as it was where a gradient is not finite; `metrics` then stops the run.
        number = torch.tensor(step, device=self._device)
        self.adam.found_inf = self._watch.observe(number, loss)  # type: ignore[attr-defined]
        self.adam.step()
        numbers = {"loss": loss, **means}
        found = [torch.ones((), device=self._device), *(numbers[name].detach() for name in self._means)]
        self._sums += torch.stack([each.double() for each in found])

    def metrics(self) -> dict[str, float]:
        """The means since the last call, and the norm of the last gradient; waits for the device.

        Raises:
            NonFiniteError: if a loss or gradient was not finite.
        """
        steps, *sums = take_sums(self._sums, self._watch, self._processes)
        means = {f"train/{name}": total / max(steps, 1) for name, total in zip(self._means, sums, strict=True)}
        return {**means, "train/gradient_norm": float(self._watch.grad_norm)}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Give everything that a checkpoint must hold."""
        return training_tensors(self.model, self._adam_state, self._sums)

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        load_training_tensors(groups, self.model, self._adam_state, self._sums)
