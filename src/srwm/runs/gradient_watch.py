"""The guard against NaN: a run whose gradient or loss is not finite stops, and says where and when."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from srwm.errors import RunError

__all__ = ["GradientWatch", "NonFiniteError"]


class NonFiniteError(RunError):
    """A gradient or a loss became NaN or infinite."""


class GradientWatch:
    """Looks at every gradient of every step, on the device, without waiting for it.

    Nothing here depends in Python on a value, so `observe` can be captured in a CUDA graph. What it finds stays on the
    device until `check` asks.

    Attributes:
        grad_norm: the norm of the whole gradient at the last `observe`, a float32 scalar on the device.

    Example:
        >>> watch = GradientWatch(model.named_parameters(), "cpu")
        >>> optimizer = torch.optim.Adam(model.parameters(), fused=True)
        >>> loss.backward()
        >>> optimizer.found_inf = watch.observe(step, loss)     # 1.0 keeps the optimizer from moving
        >>> optimizer.step()
        >>> watch.check()                                       # now and then
    """

    def __init__(self, named_parameters: Iterable[tuple[str, nn.Parameter]], device: torch.device | str) -> None:
        named = [(name, parameter) for name, parameter in named_parameters if parameter.requires_grad]
        self._names = [name for name, _ in named]
        self._parameters = [parameter for _, parameter in named]
        self.grad_norm = torch.zeros((), device=device)
        self._no_gradient = torch.zeros((), device=device)
        self._found = torch.zeros((), device=device)
        self._first_step = torch.full((), -1, dtype=torch.int64, device=device)
        self._first_loss = torch.zeros((), dtype=torch.float64, device=device)
        self._first_bad = torch.zeros(len(named), dtype=torch.bool, device=device)

    @torch.no_grad()
    def observe(self, step: Tensor, loss: Tensor) -> Tensor:
        """Look at the gradients as they are now.

        Returns:
            A float32 scalar: 1.0 if a gradient or the loss is not finite, now or at any step before, else 0.0. As
            `found_inf` of a fused optimizer it keeps the weights as they were before the first bad step. The tensor is
            the same at every call.
        """
        norms = self._norms()
        self.grad_norm.copy_(torch.linalg.vector_norm(norms))
        bad = ~torch.isfinite(norms)
        is_bad = bad.any() | ~torch.isfinite(loss.detach()).all()
        is_first = is_bad & (self._first_step < 0)
        self._first_step.copy_(torch.where(is_first, step, self._first_step))
        self._first_loss.copy_(torch.where(is_first, loss.detach().double(), self._first_loss))
        self._first_bad.logical_or_(bad & is_first)
        self._found.copy_(self._first_step >= 0)
        return self._found

    def check(self) -> None:
        """Wait for the device and stop if anything was not finite.

        Raises:
            NonFiniteError: naming the first bad step, its loss and the parameters whose gradients were bad in it.
        """
        step = int(self._first_step.item())
        if step < 0:
            return
        loss = float(self._first_loss.item())
        names = [name for name, bad in zip(self._names, self._first_bad.tolist(), strict=True) if bad]
        if not names:
            raise NonFiniteError(f"the loss is {loss} at step {step}, while every gradient is finite")
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        what = "gradient" if len(names) == 1 else "gradients"
        verb = "is" if len(names) == 1 else "are"
        raise NonFiniteError(f"the {what} of {shown} {verb} not finite at step {step} (loss {loss:.6g})")

    def _norms(self) -> Tensor:
        """Give the norm of each gradient, 0 for parameters without one, float32 [parameters]."""
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        if not gradients:
            return self._no_gradient.repeat(len(self._parameters))
        if all(gradient.dtype in (torch.float32, torch.float64) for gradient in gradients):
            norms = iter(torch._foreach_norm(gradients))
        else:
            # In half precision a norm may overflow where the gradient has not.
            norms = iter(
                [torch.linalg.vector_norm(g.to(torch.promote_types(g.dtype, torch.float32))) for g in gradients]
            )
        return torch.stack(
            [self._no_gradient if parameter.grad is None else next(norms) for parameter in self._parameters]
        ).float()
