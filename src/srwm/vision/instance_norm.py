"""Instance norm, 2x2 max pool and ReLU in one: what follows each convolution of a Conv-4 that sees many data sets."""

import functools
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from srwm.ops.kernels import in_memory

_TRITON_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_MOST_PIXELS = 64 * 64
"""Of an image, that one program of a kernel holds; PyTorch's operators serve larger ones."""


class InstanceNorm(nn.Module):
    """Each channel of each image is brought to mean 0 and deviation 1, then scaled and shifted.

    There are no running statistics: an image is seen alike in training and afterwards, whatever else is in the batch.
    That suits networks which meet data sets that they were not trained on.

    Args:
        channels: channels of the images.
        eps: added to the variance.

    Attributes:
        weight: scale of each channel.
        bias: shift of each channel.
    """

    def __init__(self, channels: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
        """Normalise."""
        y: Tensor = F.instance_norm(x, weight=self.weight, bias=self.bias, eps=self.eps)
        return y


def instance_norm_pool_relu(x: Float[Tensor, "n c h w"], norm: InstanceNorm) -> Float[Tensor, "n c h2 w2"]:
    """Normalise, take the maximum of each 2x2 window, and rectify.

    On a GPU one Triton kernel does it, which reads each image once; elsewhere it is PyTorch's own operators.

    Args:
        x: images; channels-last in memory is the fast layout. An odd last row or column is not pooled.
        norm: the instance norm.

    Returns:
        The pooled images.
    """
    if x.is_cuda and x.dtype in _TRITON_DTYPES and 0 < x.shape[2] * x.shape[3] <= _MOST_PIXELS and len(x):
        return fused_instance_norm_pool_relu(x, norm)
    pooled: Tensor = F.max_pool2d(norm(x), 2).relu()
    return pooled


def fused_instance_norm_pool_relu(x: Tensor, norm: InstanceNorm) -> Tensor:
    """`instance_norm_pool_relu` by the Triton kernels."""
    y: Tensor = _InstanceNormPoolRelu.apply(x, norm.weight, norm.bias, norm.eps)  # type: ignore[no-untyped-call]
    return y


class _InstanceNormPoolRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        x, weight, bias = in_memory(x, torch.channels_last), in_memory(weight), in_memory(bias)
        y: Tensor = _kernels().forward(x, weight, bias, eps)
        ctx.save_for_backward(x, weight, bias)
        ctx.eps = eps
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        dx, dweight, dbias = _kernels().backward(x, in_memory(dy, torch.channels_last), weight, bias, ctx.eps)
        return dx, dweight, dbias, None


@functools.cache
def _kernels() -> ModuleType:
    """Triton takes a second to import, so only where it is used."""
    return import_module(f"{__package__}._instance_norm_triton")
