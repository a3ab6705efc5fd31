"""What the registered operators have in common: finding the kernels, and calling them."""

import functools
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _get_current_dispatch_mode

_PLAIN = (Tensor, torch.nn.Parameter)


@functools.cache
def kernels(package: str | None, backend: str) -> ModuleType:
    """The module of a backend, imported at its first use: numba and Triton take a second or more."""
    return import_module(f"{package}.{backend}")


def in_memory(tensor: Tensor, memory_format: torch.memory_format = torch.contiguous_format) -> Tensor:
    """The tensor as kernels read it, which see nothing but memory: in this order, each number with its own sign."""
    # Only a sign: a lazy negative, such as `z.conj().imag`, lies in memory as it was before, and lazy zeros nowhere.
    if tensor.is_neg() or tensor._is_zerotensor():
        return tensor.clone(memory_format=memory_format)
    return tensor.contiguous(memory_format=memory_format)


def contiguous(*tensors: Tensor | None) -> list[Any]:
    """The tensors in row-major memory, as all kernels read them; None stays None."""
    return [None if tensor is None else in_memory(tensor) for tensor in tensors]


def segments(reset: Tensor) -> Tensor:
    """For each step, the last reset at or before it, or -1: int32 [b, t]."""
    steps = torch.arange(reset.shape[1], device=reset.device, dtype=torch.int32)
    return torch.where(reset, steps, -1).cummax(dim=1).values


def requires_grad(*tensors: Tensor | None) -> bool:
    """Whether a gradient will be asked for with respect to any of the tensors."""
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


def refuse_forward_mode(operator: str, *tensors: Tensor | None) -> None:
    """Refuse tensors that carry a tangent: the kernels would silently drop it."""
    # Outside a dual level no tensor has one, and a graph being compiled knows none.
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    if any(tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors):
        raise RuntimeError(f'{operator} has no forward-mode derivative in a fast backend; pass backend="reference"')


def runs_eagerly(*tensors: Tensor | None) -> bool:
    """True where nothing traces, fakes or transforms the call, and only plain tensors are at hand."""
    return (
        not torch.compiler.is_compiling()
        and _get_current_dispatch_mode() is None
        and not torch._C._are_functorch_transforms_active()
        and all(
            # The gradients of a batched derivative call themselves plain, and have no memory.
            tensor is None or (type(tensor) in _PLAIN and torch._C._has_storage(tensor))
            for tensor in tensors
        )
    )


def undispatched(
    forward: Callable[..., tuple[Tensor, ...]],
    save: Callable[[Any, tuple[Any, ...], tuple[Tensor, ...]], None],
    differentiate: Callable[..., Any],
) -> Callable[..., tuple[Tensor, ...]]:
    """An operator without PyTorch's dispatcher, which costs more time than a short sequence; gives y and the end."""

    class Undispatched(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
            output = forward(*inputs)
            save(ctx, inputs, output)
            return output[:2]

        backward = staticmethod(differentiate)

    return Undispatched.apply


def refuse_second_derivative(operator: str) -> Callable[..., Any]:
    """The derivative of a backward kernel: an error, because there is none."""

    def refuse(*_: Any) -> Any:
        raise RuntimeError(
            f"{operator} was differentiated twice through a fast backend, which has no second derivative; "
            'call it with backend="reference"'
        )

    return refuse
