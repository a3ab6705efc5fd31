"""Max pool 3x3 with stride 2, the bias of the convolution before it, and the ReLU after it."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from srwm.ops.kernels import in_memory

from .bias import sum_over_pixels

_TRITON_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def max_pool_bias(x: Float[Tensor, "n c h w"], bias: Float[Tensor, "c"]) -> Float[Tensor, "n c h2 w2"]:
    """Take the maximum of 3x3 windows, two pixels apart, and add a bias to each channel.

    On a GPU our kernels do it: PyTorch's gradient of this pool adds up in an order that differs from call to call.

    Args:
        x: images; channels-last in memory is the fast layout. Beyond their border there is nothing.
        bias: one number for each channel; equal to adding it to `x`.

    Returns:
        The pooled images, half as high and wide, rounded up.
    """
    bias = bias.to(x.dtype)
    if x.is_cuda and x.dtype in _TRITON_DTYPES:
        return fused_max_pool_bias(x, bias)
    return torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1) + bias[:, None, None]


def max_pool_bias_relu(
    x: Float[Tensor, "n c h w"], bias: Float[Tensor, "c"]
) -> tuple[Float[Tensor, "n c h2 w2"], Float[Tensor, "n c h2 w2"]]:
    """Give what `max_pool_bias` gives, and its ReLU: what a residual block skips with, and what it begins with."""
    bias = bias.to(x.dtype)
    if x.is_cuda and x.dtype in _TRITON_DTYPES:
        return fused_max_pool_bias_relu(x, bias)
    y = torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1) + bias[:, None, None]
    return y, y.relu()


def fused_max_pool_bias(x: Tensor, bias: Tensor) -> Tensor:
    """`max_pool_bias` by the kernels."""
    y: Tensor = _MaxPoolBias.apply(x, bias)  # type: ignore[no-untyped-call]
    return y


def fused_max_pool_bias_relu(x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """`max_pool_bias_relu` by the kernels."""
    both: tuple[Tensor, Tensor] = _MaxPoolBiasReLU.apply(x, bias)  # type: ignore[no-untyped-call]
    return both


class _MaxPoolBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        from . import _max_pool_triton as kernels  # Triton takes a second to import

        y: Tensor
        y, _, winner = kernels.forward(in_memory(x, torch.channels_last), in_memory(bias), keeps_relu=False)
        ctx.save_for_backward(winner)
        ctx.size = x.shape
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
        from . import _max_pool_triton as kernels

        (winner,) = ctx.saved_tensors
        dy = in_memory(dy, torch.channels_last)
        return kernels.backward(dy, winner, ctx.size), sum_over_pixels(dy).to(dy.dtype)


class _MaxPoolBiasReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        from . import _max_pool_triton as kernels

        y, relu, winner = kernels.forward(in_memory(x, torch.channels_last), in_memory(bias), keeps_relu=True)
        ctx.save_for_backward(relu, winner)
        ctx.size = x.shape
        return y, relu

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, drelu: Tensor) -> tuple[Tensor, Tensor]:
        from . import _bias_triton as bias_kernels
        from . import _max_pool_triton as kernels

        relu, winner = ctx.saved_tensors
        dy, drelu = (in_memory(part, torch.channels_last) for part in (dy, drelu))
        joined, total = bias_kernels.join_gradients(dy, drelu, relu)
        return kernels.backward(joined, winner, ctx.size), total.to(joined.dtype)
