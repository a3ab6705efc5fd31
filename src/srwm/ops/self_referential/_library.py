"""The fast kernels as operators PyTorch knows: shapes for tracing, and the gradient."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._checkpoints import empty_checkpoints
from .._kernels import (
    contiguous,
    kernels,
    refuse_forward_mode,
    refuse_second_derivative,
    requires_grad,
    runs_eagerly,
)
from ._saved import Saved


def forward(
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    learning_rates: int,
    save: bool,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return y, the end state, and what is saved (empty unless `save`)."""
    saved = _empty_saved(x, weight, learning_rates, save)
    y, end = _launch(x, weight, state, reset, learning_rates, saved if save else None, backend)
    return y, end, *saved


def _launch(
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    learning_rates: int,
    saved: Saved | None,
    backend: str,
) -> tuple[Tensor, Tensor]:
    y, end = _empty_outputs(x, weight, learning_rates)
    if x.shape[1] == 0 or end.numel() == 0:
        end.zero_() if state is None else end.copy_(state)
    else:
        inputs = contiguous(x, weight, state, reset)
        kernels(__package__, backend).forward(*inputs, learning_rates, y, end, saved)
    return y, end


def backward(
    dy: Tensor | None,
    dend: Tensor | None,
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    end: Tensor,
    q: Tensor,
    k: Tensor,
    beta: Tensor,
    difference: Tensor,
    checkpoints: Tensor,
    last_jumps: Tensor,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weight and the incoming state."""
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.shape[1] == 0 or end.numel() == 0:
        return dx.zero_(), torch.zeros_like(weight), torch.zeros_like(end) if dend is None else dend.clone()
    dstate = torch.empty_like(end)
    # Without resets and a gradient of the end state, what reaches the state reaches `weight`, too.
    apart = reset is not None or dend is not None
    dweight = torch.zeros_like(end) if apart else None
    g_y = x.new_zeros(*x.shape[:3], weight.shape[2] - 2 * x.shape[3] - beta.shape[3]) if dy is None else dy
    inputs = contiguous(g_y, dend, x, weight, state, reset)
    saved = Saved(q, k, beta, difference, checkpoints, last_jumps)
    kernels(__package__, backend).backward(*inputs, end, saved, dx, dstate, dweight)
    return dx, (dstate if dweight is None else dweight).sum(0), dstate


def _empty_outputs(x: Tensor, weight: Tensor, learning_rates: int) -> tuple[Tensor, Tensor]:
    b, t, h, d = x.shape
    m = weight.shape[2]
    return x.new_empty(b, t, h, m - 2 * d - learning_rates), weight.new_empty(b, h, d, m)


def _empty_saved(x: Tensor, weight: Tensor, learning_rates: int, save: bool) -> Saved:
    b, t, h, d = x.shape
    m = weight.shape[2]
    sizes = (d, d, learning_rates, m) if save else (0, 0, 0, 0)
    q, k, beta, difference = (weight.new_empty(b, t, h, size) for size in sizes)
    return Saved(q, k, beta, difference, *empty_checkpoints(weight, (b, h, d, m), t, save))


_forward_op = torch.library.custom_op("srwm::self_referential", forward, mutates_args=())
_backward_op = torch.library.custom_op("srwm::self_referential_backward", backward, mutates_args=())


@_forward_op.register_fake
def _(x, weight, state, reset, learning_rates, save, backend):  # type: ignore[no-untyped-def]
    return (*_empty_outputs(x, weight, learning_rates), *_empty_saved(x, weight, learning_rates, save))


@_backward_op.register_fake
def _(dy, dend, x, weight, state, reset, end, *saved_and_backend):  # type: ignore[no-untyped-def]
    row_major = torch.contiguous_format
    return torch.empty_like(x, memory_format=row_major), torch.empty_like(weight), torch.empty_like(end)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight, state, reset, _, _, ctx.backend = inputs
    _, end, *saved = output
    # Nobody differentiates the saved vectors; without this, zeros of their size would be made for each of them.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight, state, reset, end, *saved)
    ctx.has_state = state is not None


def _differentiate(ctx: Any, dy: Tensor | None, dend: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    inputs = (dy, dend, *ctx.saved_tensors)
    run: Callable[..., Any] = backward if runs_eagerly(*inputs) and not torch.is_grad_enabled() else _backward_op
    dx, dweight, dstate = run(*inputs, ctx.backend)
    return dx, dweight, dstate if ctx.has_state else None, None, None, None, None


_forward_op.register_autograd(_differentiate, setup_context=_save)
_backward_op.register_autograd(refuse_second_derivative("self_referential"))


class _Eager(torch.autograd.Function):
    """The operator without PyTorch's dispatcher, which costs more time than a short sequence."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        output = forward(*inputs)
        _save(ctx, inputs, output)
        return output[:2]

    backward = staticmethod(_differentiate)


def run(
    x: Tensor, weight: Tensor, state: Tensor | None, reset: Tensor | None, learning_rates: int, backend: str
) -> tuple[Tensor, Tensor]:
    """Run a fast backend: through the operator PyTorch knows where something traces the call, directly elsewhere."""
    refuse_forward_mode("self_referential", x, weight, state)
    needs_grad = requires_grad(x, weight, state)
    inputs = (x, weight, state, reset, learning_rates, needs_grad, backend)
    if not runs_eagerly(x, weight, state):
        y, end, *_ = _forward_op(*inputs)
    elif needs_grad:
        y, end = _Eager.apply(*inputs)  # type: ignore[no-untyped-call]
    else:
        y, end = _launch(x, weight, state, reset, learning_rates, None, backend)
    return y, end
