"""What the registered operators have in common: finding the kernels, and calling them."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _get_current_dispatch_mode


def kernels(package: str | None, backend: str) -> ModuleType:
    """The module of a backend, imported at its first use: numba and Triton take a second or more."""
    return import_module(f"{package}.{backend}")


def contiguous(*tensors: Tensor | None) -> list[Tensor | None]:
    """The tensors in row-major memory, as all kernels read them."""
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


def segments(reset: Tensor) -> Tensor:
    """For each step, the last reset at or before it, or -1: int32 [b, t]."""
    steps = torch.arange(reset.shape[1], device=reset.device, dtype=torch.int32)
    return torch.where(reset, steps, -1).cummax(dim=1).values


def requires_grad(*tensors: Tensor | None) -> bool:
    """Whether a gradient will be asked for with respect to any of the tensors."""
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


def runs_eagerly(*tensors: Tensor | None) -> bool:
    """True where nothing traces, fakes or transforms the call, and only plain tensors are at hand."""
    return (
        not torch.compiler.is_compiling()
        and _get_current_dispatch_mode() is None
        and not torch._C._are_functorch_transforms_active()
        and all(tensor is None or type(tensor) in (Tensor, torch.nn.Parameter) for tensor in tensors)
    )


def refuse_second_derivative(operator: str) -> Callable[..., Any]:
    """The derivative of a backward kernel: an error, because there is none."""

    def refuse(*_: Any) -> Any:
        raise RuntimeError(
            f"{operator} was differentiated twice through a fast backend, which has no second derivative; "
            'call it with backend="reference"'
        )

    return refuse
