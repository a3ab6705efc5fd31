"""RMSprop as in TorchBeast, with a rate that lives on the device."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class RMSprop:
    """`v = alpha v + (1 - alpha) g^2; p = p - rate g / (sqrt(v) + eps)`.

    PyTorch's own cannot be told on the device that a step is not to be done; here such a step changes nothing. All
    gradients are worked on in one row: a few kernels in the place of several for each parameter.

    Attributes:
        squares: the mean square of the gradient of each parameter, by its name.
    """

    def __init__(self, named_parameters: Iterable[tuple[str, nn.Parameter]], *, alpha: float, eps: float) -> None:
        named = [(name, parameter) for name, parameter in named_parameters if parameter.requires_grad]
        self._parameters: list[Tensor] = [parameter for _, parameter in named]
        self._square = torch.cat([torch.zeros_like(parameter).flatten() for parameter in self._parameters])
        self.squares = dict(zip((name for name, _ in named), self._by_parameter(self._square), strict=True))
        self._alpha, self._eps = alpha, eps

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, rate: Tensor, scale: Tensor, is_bad: Tensor) -> None:
        """Move the parameters that have a gradient; where `is_bad`, on the device, nothing changes."""
        gradient = scale * torch.cat([_gradient(parameter).flatten() for parameter in self._parameters])
        square = torch.addcmul(self._alpha * self._square, gradient, gradient, value=1 - self._alpha)
        change = rate * gradient / (square.sqrt() + self._eps)
        self._square.copy_(torch.where(is_bad, self._square, square))
        torch._foreach_sub_(self._parameters, self._by_parameter(change.masked_fill(is_bad, 0.0)))

    def _by_parameter(self, row: Tensor) -> list[Tensor]:
        """Cut a row into parts, each of the shape of its parameter."""
        parts = row.split([parameter.numel() for parameter in self._parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._parameters, strict=True)]


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
