"""Which way an answer lies: the gradient of a score with respect to what each layer puts out."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from srwm.errors import InputError
from srwm.nn import FastMatrix

from ._sites import find_matrices


def answer_gradients(model: nn.Module, score: Callable[[], Float[Tensor, "b"]]) -> dict[str, Tensor]:
    """Differentiate a score of each row of a batch with respect to the outputs of each layer's heads.

    Args:
        model: any module with layers of `srwm.nn`, each of which `score` calls at most once.
        score: calls the model and gives one number for each row, for example by how much the score of its answer
            exceeds the mean of the others.

    Returns:
        For the name of each layer that was called, as in `MatrixRecord.name`, the gradient [b, t, h, e].

    Raises:
        InputError: if the scores do not depend on any layer, or a layer was called twice.
    """
    added: dict[str, Tensor] = {}
    handles: list[RemovableHandle] = []
    try:
        for site in find_matrices(model):
            handles += [_listen(site, added)]
        with torch.inference_mode(False), torch.enable_grad():
            scores = score()
    finally:
        for handle in handles:
            handle.remove()
    if not added or not scores.requires_grad:
        raise InputError("the scores do not depend on any layer that changes its weights")
    found = torch.autograd.grad(scores.sum(), list(added.values()), materialize_grads=True)
    return {name: gradient.cpu() for name, gradient in zip(added, found, strict=True)}


def _listen(site: FastMatrix, added: dict[str, Tensor]) -> RemovableHandle:
    """Add a zero to the outputs of the heads, with respect to which one can differentiate, even in a frozen model."""

    def plus_zero(y: Tensor) -> Tensor:
        if site.name in added:
            raise InputError(f"{site.name} was called twice; its gradient is that of a single call")
        zero = torch.zeros_like(y, requires_grad=True)
        added[site.name] = zero
        return y + zero

    def after(_: nn.Module, __: Any, output: tuple[Tensor, Any]) -> tuple[Tensor, Any]:
        return heads(output[0]).flatten(-2), output[1]

    def before(_: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        return (heads(args[0]).flatten(-2),)

    def heads(y: Tensor) -> Tensor:
        return plus_zero(y.unflatten(-1, (site.num_heads, -1)))

    if site.read_by is not None:
        return site.read_by.register_forward_pre_hook(before)
    handle: RemovableHandle = site.layer.register_forward_hook(after)
    return handle
