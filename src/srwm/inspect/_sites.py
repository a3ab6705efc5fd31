"""Where in a model matrices change: its layers say so themselves."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from srwm.nn import FastCall, FastMatrix, SequenceLayer


def find_matrices(model: nn.Module) -> list[FastMatrix]:
    """List the matrices of a model's layers, in the order of its modules, each with the full name of its layer.

    A name ends in "/slow" or "/fast" where the layer has two matrices.

    Example:
        >>> from srwm.nn import SequenceModel
        >>> model = SequenceModel(5, memory="sr_deltanet", hidden_size=8, num_heads=2, num_layers=1)
        >>> for matrix in find_matrices(model):
        ...     print(matrix.name, matrix.kind)
        layers.0.memory/slow self_referential
        layers.0.memory/fast delta_rule
    """
    found: list[FastMatrix] = []
    told: set[nn.Module] = set()
    for name, module in model.named_modules():
        # A layer may have told of the matrices of a layer inside it.
        if module in told or not isinstance(module, SequenceLayer):
            continue
        for matrix in module.fast_matrices():
            told.add(matrix.layer)
            found.append(replace(matrix, name=f"{name}/{matrix.name}".strip("/") or "layer"))
    return found


def listen(matrix: FastMatrix, tell: Callable[[FastCall], None]) -> RemovableHandle:
    """Have `tell` called with every call of the layer of a matrix, until the handle is removed."""

    @torch.no_grad()
    def hook(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        tell(matrix.layer.fast_call(*_arguments(*args, **kwargs), output))

    handle: RemovableHandle = matrix.layer.register_forward_hook(hook, with_kwargs=True)
    return handle


def _arguments(x: Tensor, state: Any = None, *, reset: Tensor | None = None) -> tuple[Tensor, Any, Tensor | None]:
    """The arguments of a layer under the contract, however they were given."""
    return x, state, reset
