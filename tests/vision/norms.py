"""Batch norm, pool and ReLU by PyTorch's own operators, to compare with."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.vision import BatchNorm


class Outcome(NamedTuple):
    """Everything that a pass forward and backward leaves behind."""

    y: Tensor
    dx: Tensor
    dweight: Tensor
    dbias: Tensor
    running_mean: Tensor
    running_var: Tensor


def make_norm(channels: int, *, momentum: float = 0.3, device: str = "cpu") -> BatchNorm:
    """A norm whose scales have both signs, with statistics that have moved already."""
    norm = BatchNorm(channels, momentum=momentum, eps=1e-4)
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_(std=0.5)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2.0)
    return norm.to(device)


def images(n: int, c: int, h: int, w: int, device: str = "cpu") -> Tensor:
    """Images whose channels differ in mean and deviation, channels-last."""
    x = torch.randn(n, c, h, w) * (torch.rand(c, 1, 1) + 0.5) + torch.randn(c, 1, 1)
    return x.to(device).contiguous(memory_format=torch.channels_last)


def outcome(function, x: Tensor, norm: BatchNorm, conv_bias: Tensor | None = None) -> Outcome:
    """Run a function like `norm_pool_relu` forward and backward, from a fixed gradient; the norm is copied first."""
    copy = BatchNorm(len(norm.weight), momentum=norm.momentum, eps=norm.eps).to(norm.weight.device, norm.weight.dtype)
    copy.load_state_dict(norm.state_dict())
    x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    y = function(x, copy, conv_bias)
    generator = torch.Generator().manual_seed(1)
    dy = torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.device, y.dtype)
    y.backward(dy)
    return Outcome(y.detach(), x.grad, copy.weight.grad, copy.bias.grad, copy.running_mean, copy.running_var)


def by_pytorch(x: Tensor, norm: BatchNorm, conv_bias: Tensor | None = None) -> Tensor:
    """Batch norm, max pool and ReLU, one after the other; a bias is simply added."""
    if conv_bias is not None:
        x = x + conv_bias[:, None, None]
    y = F.batch_norm(
        x, norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.training, norm.momentum, norm.eps
    )
    return F.max_pool2d(y, 2).relu()
