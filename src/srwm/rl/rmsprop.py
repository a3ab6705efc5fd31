"""RMSprop as in TorchBeast, with a rate that lives on the device."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class RMSprop:
    """`v = alpha v + (1 - alpha) g^2; p = p - rate g / (sqrt(v) + eps)`.

    PyTorch's own cannot be told on the device that a step is not to be done; here such a step changes nothing.

    Args:
        named_parameters: what is trained.
        alpha: decay of the mean square.
        eps: added to its root.
    """

    def __init__(self, named_parameters: Iterable[tuple[str, nn.Parameter]], *, alpha: float, eps: float) -> None:
        named = [(name, parameter) for name, parameter in named_parameters if parameter.requires_grad]
        self._parameters = [parameter for _, parameter in named]
        self.squares = {name: torch.zeros_like(parameter) for name, parameter in named}
        self._alpha, self._eps = alpha, eps

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, rate: Tensor, scale: Tensor, is_bad: Tensor) -> None:
        """Move the parameters that have a gradient.

        Args:
            rate: learning rate, a scalar on the device.
            scale: factor on the gradients, a scalar on the device.
            is_bad: where true (bool scalar), nothing changes, whatever the gradients are.
        """
        every = zip(self._parameters, self.squares.values(), strict=True)
        having = [(parameter, square) for parameter, square in every if parameter.grad is not None]
        parameters, squares = [parameter for parameter, _ in having], [square for _, square in having]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        gradients = list(torch._foreach_mul(gradients, scale))
        new_squares = torch._foreach_mul(squares, self._alpha)
        torch._foreach_addcmul_(new_squares, gradients, gradients, 1 - self._alpha)
        roots = torch._foreach_sqrt(new_squares)
        torch._foreach_add_(roots, self._eps)
        steps = torch._foreach_div(gradients, roots)
        torch._foreach_mul_(steps, rate)
        for old, new in zip(squares, new_squares, strict=True):
            old.copy_(torch.where(is_bad, old, new))
        for parameter, change in zip(parameters, steps, strict=True):
            parameter.sub_(change.masked_fill_(is_bad, 0.0))
