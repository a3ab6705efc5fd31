"""The fast kernels as operators PyTorch knows: shapes for tracing, and the gradient."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._checkpoints import empty_checkpoints
from ..checks import state_dtype
from ..kernels import (
    contiguous,
    kernels,
    refuse_forward_mode,
    refuse_second_derivative,
    requires_grad,
    runs_eagerly,
    undispatched,
)
from ._arguments import DeltaGradients, DeltaInputs, DeltaSaved


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    state: Tensor | None,
    decay: Tensor | None,
    reset: Tensor | None,
    save: bool,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return y, the end state, and what is saved (empty unless `save`)."""
    y, end, error, checkpoints, last_jumps = _empty_outputs(q, k, v, beta, state, decay, save)
    if q.shape[1] == 0 or end.numel() == 0:
        end.zero_() if state is None else end.copy_(state)
    else:
        inputs = DeltaInputs(*contiguous(q, k, v, beta, state, decay, reset))
        saved = DeltaSaved(error, checkpoints, last_jumps) if save else None
        kernels(__package__, backend).forward(inputs, y, end, saved)
    return y, end, error, checkpoints, last_jumps


def backward(
    dy: Tensor | None,
    dend: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    state: Tensor | None,
    decay: Tensor | None,
    reset: Tensor | None,
    end: Tensor,
    error: Tensor,
    checkpoints: Tensor,
    last_jumps: Tensor,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of q, k, v, beta, the incoming state and the decay (empty if there is none)."""
    dq, dk, dv, dbeta, ddecay = _empty_gradients(q, k, v, beta, decay)
    if q.shape[1] == 0 or end.numel() == 0:
        dstate = torch.zeros_like(end) if dend is None else dend.clone()
        return dq.zero_(), dk.zero_(), dv.zero_(), dbeta.zero_(), dstate, ddecay.zero_()
    dstate = torch.empty_like(end)
    g_y = torch.zeros_like(v) if dy is None else dy
    g_end = torch.zeros_like(end) if dend is None else dend
    # Nothing reads the values any more.
    g_y, g_end, q, k, beta, *others = contiguous(g_y, g_end, q, k, beta, state, decay, reset)
    saved, gradients = DeltaSaved(error, checkpoints, last_jumps), DeltaGradients(dq, dk, dv, dbeta, dstate, ddecay)
    kernels(__package__, backend).backward(g_y, g_end, DeltaInputs(q, k, v, beta, *others), end, saved, gradients)
    return dq, dk, dv, dbeta, dstate, ddecay


def _empty_gradients(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Room for the gradients of what runs along time."""
    dq, dk, dv, dbeta = (torch.empty_like(each, memory_format=torch.contiguous_format) for each in (q, k, v, beta))
    ddecay = beta.new_empty(0) if decay is None else torch.empty_like(decay, memory_format=torch.contiguous_format)
    return dq, dk, dv, dbeta, ddecay


def _empty_outputs(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, state: Tensor | None, decay: Tensor | None, save: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    b, t, h, d = q.shape
    e = v.shape[3]
    dtype = state.dtype if state is not None else state_dtype(*(x for x in (q, k, v, beta, decay) if x is not None))
    end = v.new_empty(b, h, d, e, dtype=dtype)
    return (
        v.new_empty(b, t, h, e),
        end,
        end.new_empty(b, t, h, e if save else 0),
        *empty_checkpoints(end, (b, h, d, e), t, save, decay is not None),
    )


_forward_op = torch.library.custom_op("srwm::delta_rule", forward, mutates_args=())
_backward_op = torch.library.custom_op("srwm::delta_rule_backward", backward, mutates_args=())


@_forward_op.register_fake
def _(q, k, v, beta, state, decay, reset, save, backend):  # type: ignore[no-untyped-def]
    return _empty_outputs(q, k, v, beta, state, decay, save)


@_backward_op.register_fake
def _(dy, dend, q, k, v, beta, state, decay, reset, end, *saved_and_backend):  # type: ignore[no-untyped-def]
    *gradients, ddecay = _empty_gradients(q, k, v, beta, decay)
    return *gradients, torch.empty_like(end), ddecay


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    q, k, v, beta, state, decay, reset, _, ctx.backend = inputs
    _, end, *saved = output
    # Nobody differentiates what is saved; without this, zeros of their size would be made.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q, k, v, beta, state, decay, reset, end, *saved)
    ctx.has_state, ctx.decays = state is not None, decay is not None


def _differentiate(ctx: Any, dy: Tensor | None, dend: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    inputs = (dy, dend, *ctx.saved_tensors)
    run: Callable[..., Any] = backward if runs_eagerly(*inputs) and not torch.is_grad_enabled() else _backward_op
    *grads, dstate, ddecay = run(*inputs, ctx.backend)
    return *grads, dstate if ctx.has_state else None, ddecay if ctx.decays else None, None, None, None


_forward_op.register_autograd(_differentiate, setup_context=_save)
_backward_op.register_autograd(refuse_second_derivative("delta_rule"))
_eager = undispatched(forward, _save, _differentiate)


def run(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    state: Tensor | None,
    decay: Tensor | None,
    reset: Tensor | None,
    backend: str,
) -> tuple[Tensor, Tensor]:
    """Run a fast backend: through the operator PyTorch knows where something traces the call, directly elsewhere."""
    floats = (q, k, v, beta, state, decay)
    refuse_forward_mode("delta_rule", *floats)
    needs_grad = requires_grad(*floats)
    inputs = (*floats, reset, needs_grad, backend)
    if not runs_eagerly(*floats):
        y, end, *_ = _forward_op(*inputs)
    elif needs_grad:
        y, end = _eager(*inputs)
    else:
        y, end, *_ = forward(*inputs)
    return y, end
