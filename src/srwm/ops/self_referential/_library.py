"""The fast kernels as operators PyTorch knows: shapes for tracing, and the gradient."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._checkpoints import empty_checkpoints
from ..kernels import (
    contiguous,
    kernels,
    refuse_forward_mode,
    refuse_second_derivative,
    requires_grad,
    runs_eagerly,
    undispatched,
)
from ._arguments import SelfReferentialGradients, SelfReferentialInputs, SelfReferentialSaved
from .options import Options, column_widths


def forward(
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    learning_rates: int,
    key_map: str,
    forget_gates: int,
    forget_min: float,
    forget_max: float,
    forget_bias: float,
    difference_clip: float,
    save: bool,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return y, the end state, and what is saved (empty unless `save`)."""
    options = _options(learning_rates, key_map, forget_gates, forget_min, forget_max, forget_bias, difference_clip)
    saved = _empty_saved(x, weight, options, save)
    y, end = _launch(x, weight, state, reset, options, saved if save else None, backend)
    return y, end, *saved


def _options(*options: Any) -> Options:
    """What PyTorch hands on as plain arguments."""
    return Options(*options)


def _launch(
    x: Tensor,
    weight: Tensor,
    state: Tensor | None,
    reset: Tensor | None,
    options: Options,
    saved: SelfReferentialSaved | None,
    backend: str,
) -> tuple[Tensor, Tensor]:
    y, end = _empty_outputs(x, weight, options)
    if x.shape[1] == 0 or end.numel() == 0:
        end.zero_() if state is None else end.copy_(state)
    else:
        inputs = SelfReferentialInputs._make((*contiguous(x, weight, state, reset), options))
        kernels(__package__, backend).forward(inputs, y, end, saved)
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
    scale: Tensor,
    difference: Tensor,
    checkpoints: Tensor,
    last_jumps: Tensor,
    learning_rates: int,
    key_map: str,
    forget_gates: int,
    forget_min: float,
    forget_max: float,
    forget_bias: float,
    difference_clip: float,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, weight and the incoming state."""
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    if x.shape[1] == 0 or end.numel() == 0:
        return dx.zero_(), torch.zeros_like(weight), torch.zeros_like(end) if dend is None else dend.clone()
    dstate = torch.empty_like(end)
    options = _options(learning_rates, key_map, forget_gates, forget_min, forget_max, forget_bias, difference_clip)
    # Without gates, resets and a gradient of the end state, what reaches the state reaches `weight`, too.
    apart = forget_gates > 0 or reset is not None or dend is not None
    dweight = torch.zeros_like(end) if apart else None
    g_y = x.new_zeros(*x.shape[:3], column_widths(options, *weight.shape[1:])[0]) if dy is None else dy
    g_y, g_end, *arguments = contiguous(g_y, dend, x, weight, state, reset)
    inputs = SelfReferentialInputs._make((*arguments, options))
    saved = SelfReferentialSaved(q, k, beta, scale, difference, checkpoints, last_jumps)
    gradients = SelfReferentialGradients(dx, dstate, dweight)
    kernels(__package__, backend).backward(g_y, g_end, inputs, end, saved, gradients)
    return dx, (dstate if dweight is None else dweight).sum(0), dstate


def _empty_outputs(x: Tensor, weight: Tensor, options: Options) -> tuple[Tensor, Tensor]:
    b, t, h, d = x.shape
    m = weight.shape[2]
    return x.new_empty(b, t, h, column_widths(options, d, m)[0]), weight.new_empty(b, h, d, m)


def _empty_saved(x: Tensor, weight: Tensor, options: Options, save: bool) -> SelfReferentialSaved:
    b, t, h, d = x.shape
    m = weight.shape[2]
    scales = 2 if options.key_map == "l2" else 0
    sizes = (d, d, options.learning_rates + options.forget_gates, scales, m) if save else (0,) * 5
    q, k, beta, scale, difference = (weight.new_empty(b, t, h, size) for size in sizes)
    stored = empty_checkpoints(weight, (b, h, d, m), t, save, options.forget_gates > 0)
    return SelfReferentialSaved(q, k, beta, scale, difference, *stored)


_forward_op = torch.library.custom_op("srwm::self_referential", forward, mutates_args=())
_backward_op = torch.library.custom_op("srwm::self_referential_backward", backward, mutates_args=())


@_forward_op.register_fake
def _(x, weight, state, reset, *options_save_and_backend):  # type: ignore[no-untyped-def]
    *options, save, _ = options_save_and_backend
    return (*_empty_outputs(x, weight, _options(*options)), *_empty_saved(x, weight, _options(*options), save))


@_backward_op.register_fake
def _(dy, dend, x, weight, state, reset, end, *others):  # type: ignore[no-untyped-def]
    row_major = torch.contiguous_format
    return torch.empty_like(x, memory_format=row_major), torch.empty_like(weight), torch.empty_like(end)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight, state, reset, *ctx.options, _, ctx.backend = inputs
    _, end, *saved = output
    # Nobody differentiates the saved vectors; without this, zeros of their size would be made for each of them.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, weight, state, reset, end, *saved)
    ctx.has_state = state is not None


def _differentiate(ctx: Any, dy: Tensor | None, dend: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    inputs = (dy, dend, *ctx.saved_tensors)
    run: Callable[..., Any] = backward if runs_eagerly(*inputs) and not torch.is_grad_enabled() else _backward_op
    dx, dweight, dstate = run(*inputs, *ctx.options, ctx.backend)
    return dx, dweight, dstate if ctx.has_state else None, *[None] * (1 + len(ctx.options) + 2)


_forward_op.register_autograd(_differentiate, setup_context=_save)
_backward_op.register_autograd(refuse_second_derivative("self_referential"))
_eager = undispatched(forward, _save, _differentiate)


def run(
    x: Tensor, weight: Tensor, state: Tensor | None, reset: Tensor | None, options: Options, backend: str
) -> tuple[Tensor, Tensor]:
    """Run a fast backend: through the operator PyTorch knows where something traces the call, directly elsewhere."""
    refuse_forward_mode("self_referential", x, weight, state)
    needs_grad = requires_grad(x, weight, state)
    inputs = (x, weight, state, reset, *options, needs_grad, backend)
    if not runs_eagerly(x, weight, state):
        y, end, *_ = _forward_op(*inputs)
    elif needs_grad:
        y, end = _eager(*inputs)
    else:
        y, end = _launch(x, weight, state, reset, options, None, backend)
    return y, end
