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


def runs_eagerly(*tensors: Tensor) -> bool:
    """True where nothing traces, fakes or intercepts the call.

    A registered operator costs some tens of microseconds a call, more than one step of the recurrence. When no
    gradient is asked for and only plain tensors are at hand, the kernels can be called directly.
    """
    return (
        not torch.compiler.is_compiling()
        and _get_current_dispatch_mode() is None
        and all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in tensors)
    )


def refuse_second_derivative(operator: str) -> Callable[..., Any]:
    """The derivative of a backward kernel: an error, because there is none."""

    def refuse(*_: Any) -> Any:
        raise RuntimeError(
            f"{operator} was differentiated twice through a fast backend, which has no second derivative; "
            'call it with backend="reference"'
        )

    return refuse
