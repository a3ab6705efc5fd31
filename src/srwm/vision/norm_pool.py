"""Batch norm, 2x2 max pool and ReLU in one: what follows each convolution of a Conv-4."""

import functools
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from srwm.ops.kernels import in_memory

from .batch_norm import BatchNorm, across_processes, merge_statistics

_TRITON_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def norm_pool_relu(
    x: Float[Tensor, "n c h w"], norm: BatchNorm, conv_bias: Float[Tensor, "c"] | None = None
) -> Float[Tensor, "n c h2 w2"]:
    """Normalise, take the maximum of each 2x2 window, and rectify.

    In training, fused kernels do it, on a GPU by Triton and on a CPU by numba, without writing anything of the size of
    `x` but its gradient. Otherwise it is PyTorch's own operators.

    Args:
        x: images; channels-last in memory is the fast layout. An odd last row or column is not pooled.
        norm: the batch norm; in training its running statistics are moved.
        conv_bias: a bias that belongs to `x` but was not added: batch norm takes every constant away again, so only
            the running mean has to know of it.

    Returns:
        The pooled images.
    """
    backend = _backend(x)
    if norm.training and backend is not None:
        return fused_norm_pool_relu(x, norm, conv_bias, backend)
    return torch.nn.functional.max_pool2d(norm(x, conv_bias), 2).relu()


def fused_norm_pool_relu(x: Tensor, norm: BatchNorm, conv_bias: Tensor | None, backend: str) -> Tensor:
    """`norm_pool_relu` in training, by the kernels of a backend, "triton" or "cpu"."""
    bias = None if conv_bias is None else conv_bias.detach()
    y: Tensor = _NormPoolRelu.apply(x, norm.weight, norm.bias, norm, bias, backend)  # type: ignore[no-untyped-call]
    return y


class _NormPoolRelu(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, norm: BatchNorm, conv_bias: Tensor | None, backend: str
    ) -> Tensor:
        kernels = _kernels(backend)
        x, weight, bias = in_memory(x, torch.channels_last), in_memory(weight), in_memory(bias)
        mean, square = kernels.statistics(x)
        total = x[:, 0].numel()
        if across_processes():
            mean, square, total = merge_statistics(mean, square, total)
        norm.move_running_statistics(mean, square, total, conv_bias)
        y: Tensor
        y, winner = kernels.forward(x, mean, square, weight, bias, total, norm.eps)
        ctx.save_for_backward(x, winner, mean, square, weight, bias)
        ctx.total, ctx.eps, ctx.backend = total, norm.eps, backend
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, winner, *common = ctx.saved_tensors
        kernels = _kernels(ctx.backend)
        dy = in_memory(dy, torch.channels_last)
        both = kernels.sums(dy, winner, *common, ctx.total, ctx.eps)
        own_dbias, own_dweight = both
        if across_processes():
            both = both.clone()
            torch.distributed.all_reduce(both)
        dx = kernels.backward(x, dy, *common, both, ctx.total, ctx.eps)
        return dx, own_dweight, own_dbias, None, None, None


def _backend(x: Tensor) -> str | None:
    """The kernels that can serve these images; None for PyTorch's operators."""
    if x.is_cuda and x.dtype in _TRITON_DTYPES:
        return "triton"
    return "cpu" if x.device.type == "cpu" and x.dtype == torch.float32 else None


@functools.cache
def _kernels(backend: str) -> ModuleType:
    """Triton and numba take a second to import, so only where they are used."""
    return import_module(f"{__package__}._norm_pool_{backend}")
