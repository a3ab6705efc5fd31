"""Batch norm whose statistics are those of the whole batch, also when it is spread over several processes."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class BatchNorm(nn.Module):
    """`torch.nn.BatchNorm2d`, with statistics over all processes of a `torchrun`.

    A run with n processes thus computes what a run with one would. (PyTorch's own synchronised batch norm needs GPUs.)

    Args:
        channels: channels of the images.
        momentum: how far the running statistics move towards those of a batch.
        eps: added to the variance.

    Attributes:
        weight: scale of each channel.
        bias: shift of each channel.
        running_mean: used in place of the batch's mean when not training.
        running_var: likewise, the unbiased variance.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, *, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum = momentum
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Float[Tensor, "n c h w"], missing: Tensor | None = None) -> Float[Tensor, "n c h w"]:
        """Normalise.

        Args:
            x: images.
            missing: a constant [c] that belongs to `x` but was not added; see `norm_pool_relu`.
        """
        missing = None if missing is None else missing.detach()
        if self.training and across_processes():
            return self._synchronised(x, missing)
        running_mean = self.running_mean
        if missing is not None:
            running_mean = running_mean - missing
        y = F.batch_norm(
            x, running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps
        )
        if self.training and missing is not None:
            self.running_mean.copy_(running_mean + missing)
        return y

    def _synchronised(self, x: Tensor, missing: Tensor | None) -> Tensor:
        # Sums over a batch are beyond half precision.
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        sums = torch.cat([wide.sum(dim=(0, 2, 3)), wide.new_full((1,), x[:, 0].numel())])
        sums = _add_up(sums)
        mean = sums[:-1] / sums[-1]
        away = wide - mean[:, None, None]
        square = _add_up(away.square().sum(dim=(0, 2, 3)))
        self.move_running_statistics(mean.detach(), square.detach(), sums[-1].detach(), missing)
        scale = self.weight * (square / sums[-1] + self.eps).rsqrt()
        y: Tensor = away * scale[:, None, None] + self.bias[:, None, None]
        return y.to(x.dtype)

    @torch.no_grad()
    def move_running_statistics(
        self, mean: Tensor, square: Tensor, total: Tensor | int, missing: Tensor | None = None
    ) -> None:
        """Move the running statistics towards those of a batch.

        Args:
            mean: of each channel.
            square: sum of the squared distances from it.
            total: how many numbers a channel had.
            missing: see `forward`.
        """
        self.running_mean.lerp_(mean if missing is None else mean + missing, self.momentum)
        self.running_var.lerp_(square / (total - 1), self.momentum)


def across_processes() -> bool:
    """Whether the batch is spread over several processes."""
    return torch.distributed.is_available() and torch.distributed.is_initialized() and _count() > 1


def merge_statistics(mean: Tensor, square: Tensor, total: int) -> tuple[Tensor, Tensor, int]:
    """Merge the statistics of equally large shares of a batch, one from each process (no gradient).

    Args:
        mean: of each channel, over this process's share.
        square: sum of the squared distances from it.
        total: numbers of a channel in this share.

    Returns:
        The same three of the whole batch.
    """
    own = torch.stack([mean, square])
    shares = [torch.empty_like(own) for _ in range(_count())]
    torch.distributed.all_gather(shares, own)
    means, squares = torch.stack(shares).unbind(dim=1)
    whole = means.mean(dim=0)
    return whole, (squares + total * (means - whole).square()).sum(dim=0), total * len(shares)


def _count() -> int:
    return torch.distributed.get_world_size()


class _AddUp(torch.autograd.Function):
    """The sum over all processes; the gradients of all processes are added up likewise."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        total = tensor.clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _AddUp.forward(ctx, gradient.contiguous())


def _add_up(tensor: Tensor) -> Tensor:
    total: Tensor = _AddUp.apply(tensor)  # type: ignore[no-untyped-call]
    return total
