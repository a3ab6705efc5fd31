"""The bias of a convolution together with what comes after it: a ReLU, or the addition of a residual block, or both."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from srwm.ops.kernels import in_memory

_TRITON_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def bias_relu(x: Float[Tensor, "n c h w"], bias: Float[Tensor, "c"]) -> Float[Tensor, "n c h w"]:
    """Add a bias to each channel, and take the ReLU.

    On a GPU our kernel does both in one pass, and the gradient of both in another.

    Args:
        x: what a convolution without bias gave; channels-last in memory is the fast layout.
        bias: one number for each channel.
    """
    if x.is_cuda and x.dtype in _TRITON_DTYPES:
        return fused_bias_relu(x, bias)
    return (x + bias.to(x.dtype)[:, None, None]).relu()


def add_bias(
    x: Float[Tensor, "n c h w"], skip: Float[Tensor, "n c h w"], bias: Float[Tensor, "c"]
) -> Float[Tensor, "n c h w"]:
    """Add a bias and what has skipped a convolution to what the convolution gave; see `bias_relu`."""
    if x.is_cuda and x.dtype in _TRITON_DTYPES:
        return fused_add_bias(x, skip, bias)
    return skip + (x + bias.to(x.dtype)[:, None, None])


def add_bias_relu(
    x: Float[Tensor, "n c h w"], skip: Float[Tensor, "n c h w"], bias: Float[Tensor, "c"]
) -> tuple[Float[Tensor, "n c h w"], Float[Tensor, "n c h w"]]:
    """Give what `add_bias` gives, and its ReLU: what the next residual block skips with, and what it begins with."""
    if x.is_cuda and x.dtype in _TRITON_DTYPES:
        return fused_add_bias_relu(x, skip, bias)
    y = skip + (x + bias.to(x.dtype)[:, None, None])
    return y, y.relu()


def fused_bias_relu(x: Tensor, bias: Tensor) -> Tensor:
    """`bias_relu` by the kernels."""
    y: Tensor = _BiasReLU.apply(x, bias)  # type: ignore[no-untyped-call]
    return y


def fused_add_bias(x: Tensor, skip: Tensor, bias: Tensor) -> Tensor:
    """`add_bias` by the kernels."""
    y: Tensor = _AddBias.apply(x, skip, bias)  # type: ignore[no-untyped-call]
    return y


def fused_add_bias_relu(x: Tensor, skip: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """`add_bias_relu` by the kernels."""
    both: tuple[Tensor, Tensor] = _AddBiasReLU.apply(x, skip, bias)  # type: ignore[no-untyped-call]
    return both


def sum_over_pixels(dy: Float[Tensor, "n c h w"]) -> Float[Tensor, "c"]:
    """Add up each channel, in a fixed order and in float32, on a GPU by our kernel: the gradient of a bias."""
    if not dy.is_cuda or dy.dtype not in _TRITON_DTYPES:
        return dy.sum((0, 2, 3))
    from . import _bias_triton as kernels  # Triton takes a second to import

    total: Tensor = kernels.sum_over_pixels(_channels_last(dy))
    return total


class _BiasReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        from . import _bias_triton as kernels

        y: Tensor = kernels.bias_relu(_channels_last(x), in_memory(bias))
        ctx.save_for_backward(y)
        ctx.bias_dtype = bias.dtype
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
        from . import _bias_triton as kernels

        (y,) = ctx.saved_tensors
        dx, total = kernels.relu_gradient(_channels_last(dy), y)
        return dx, total.to(ctx.bias_dtype)


class _AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, skip: Tensor, bias: Tensor) -> Tensor:
        from . import _bias_triton as kernels

        ctx.bias_dtype = bias.dtype
        y: Tensor = kernels.add_bias(_channels_last(x), _channels_last(skip), in_memory(bias))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        from . import _bias_triton as kernels

        return dy, dy, kernels.sum_over_pixels(_channels_last(dy)).to(ctx.bias_dtype)


class _AddBiasReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, skip: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        from . import _bias_triton as kernels

        y, relu = kernels.add_bias_relu(_channels_last(x), _channels_last(skip), in_memory(bias))
        ctx.save_for_backward(relu)
        ctx.bias_dtype = bias.dtype
        return y, relu

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor, drelu: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        from . import _bias_triton as kernels

        (relu,) = ctx.saved_tensors
        dx, total = kernels.join_gradients(_channels_last(dy), _channels_last(drelu), relu)
        return dx, dx, total.to(ctx.bias_dtype)


def _channels_last(x: Tensor) -> Tensor:
    return in_memory(x, torch.channels_last)
