"""The self-referential weight matrix: a matrix that computes its own changes and applies them."""

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .._backends import Backend, choose_backend
from ..checks import (
    cast,
    check_floating,
    check_reset,
    check_shape,
    check_tensor,
    refuse_derivative_transforms,
    state_dtype,
    without_autocast,
)
from . import _library
from .options import KeyMap, Options, check_options, column_widths
from .reference import self_referential_reference

__all__ = ["KeyMap", "self_referential"]


def self_referential(
    x: Float[Tensor, "b t h d"],
    weight: Float[Tensor, "h d m"],
    state: Float[Tensor, "b h d m"] | None = None,
    *,
    reset: Bool[Tensor, "b t"] | None = None,
    learning_rates: Literal[1, 4] = 4,
    key_map: KeyMap = "softmax",
    forget_gates: Literal[0, 1, 2] = 0,
    forget_min: float = 1e-4,
    forget_max: float = 0.1,
    forget_bias: float = -4.0,
    difference_clip: float = math.inf,
    backend: Backend = "auto",
) -> tuple[Float[Tensor, "b t h out"], Float[Tensor, "b h d m"]]:
    """Run a self-referential weight matrix over a sequence.

    At each step the matrix `w = weight + state` maps the input to `y | q | k | beta`, and then moves what it
    holds under the key `k` towards what it holds under the query `q`, all its columns at once. With forget gates, it
    also computes how much of its change so far it lets go of. The maths, forward and backward, is in `README.md` beside
    this file.

    Args:
        x: inputs [b, t, h, d].
        weight: the initial matrix of each head [h, d, m] with m = out + 2 d + learning_rates + forget_gates, columns
            y | q | k | beta | forget.
        state: the change from `weight` so far [b, h, d, m]; None is zero.
        reset: bool [b, t]; where true, the change is zeroed before that step, and no gradient crosses it.
        learning_rates: 4 (one for each of y, q, k and beta, as in the paper) or 1 (shared by all).
        key_map: how q and k are made: "softmax" (paper) or "l2", unit length.
        forget_gates: 0 (paper: nothing is forgotten), 1 (one gate for all columns) or 2 (one for the y columns, one for
            all others).
        forget_min: share of the change that a gate lets go of at a step at least.
        forget_max: the same at most.
        forget_bias: added to what the matrix puts out for a gate, before the sigmoid.
        difference_clip: limit of each number of (q - k) w, by its size. With it and a `forget_min` above zero, no
            number of the state is ever larger than difference_clip / forget_min.
        backend: "auto" takes the fastest that can run here; the others are "reference", "cpu" and "triton".

    Returns:
        y [b, t, h, out] in the dtype of `x`, and the state after the last step [b, h, d, m], which is kept in
        float32 for half-precision inputs.

    Raises:
        ValueError: if a shape, dtype or device does not fit, or the backend cannot run here.
        RuntimeError: if a derivative is asked for that a fast backend does not have: a second one, one in forward mode,
            or one by `torch.func`. The reference has them.

    Example:
        >>> x, weight = torch.randn(2, 5, 3, 4), torch.randn(3, 4, 4 + 4 + 4 + 4)
        >>> y, state = self_referential(x, weight)
        >>> y2, state = self_referential(x, weight, state)  # goes on where it ended
        >>> y.shape, state.shape
        (torch.Size([2, 5, 3, 4]), torch.Size([2, 3, 4, 16]))
    """
    options = Options(learning_rates, key_map, forget_gates, forget_min, forget_max, forget_bias, difference_clip)
    _check(x, weight, state, reset, options)
    chosen = choose_backend(backend, x.device, x.shape[-1])
    b, _, h, d = x.shape
    dtype = state_dtype(x, weight) if state is None else state_dtype(x, weight, state)
    if state is not None:
        state = cast(state, dtype)
    if chosen == "reference":
        start = torch.zeros(b, h, d, weight.shape[-1], dtype=dtype, device=x.device) if state is None else state
        with without_autocast(x.device):
            y, end = self_referential_reference(cast(x, dtype), cast(weight, dtype), start, reset, options)
        return cast(y, x.dtype), end
    refuse_derivative_transforms("self_referential")
    weight = cast(weight, dtype)
    if chosen == "cpu":
        y, end = _library.run(cast(x, dtype), weight, state, reset, options, chosen)
        return cast(y, x.dtype), end
    return _library.run(x, weight, state, reset, options, chosen)


def _check(x: Tensor, weight: Tensor, state: Tensor | None, reset: Tensor | None, options: Options) -> None:
    check_options(options)
    check_tensor("x", x)
    check_tensor("weight", weight)
    if x.dim() != 4:
        raise ValueError(f"x has shape {list(x.shape)}; expected [b, t, h, d]")
    b, t, h, d = x.shape
    if weight.dim() != 3 or weight.shape[:2] != (h, d):
        raise ValueError(f"weight has shape {list(weight.shape)}; expected [h, d, m] = [{h}, {d}, m] to fit x")
    m = weight.shape[2]
    out, *others = column_widths(options, d, m)
    if d < 1 or out < 1:
        raise ValueError(
            f"weight has {m} columns for heads of size {d}; expected m = out + 2 d + learning_rates + forget_gates "
            f"= out + {sum(others)} with out and d at least 1"
        )
    if state is not None:
        check_shape("state", state, (b, h, d, m), "[b, h, d, m]")
    check_floating(x=x, weight=weight, state=state)
    check_reset(reset, b, t, x.device)


def sample_inputs(generator: torch.Generator) -> list[Tensor]:
    """Small inputs of the operator, in its order, by which `srwm doctor` tries its backends."""
    b, t, h, d, out = 2, 7, 2, 5, 3
    shapes = [(b, t, h, d), (h, d, out + 2 * d + 4), (b, h, d, out + 2 * d + 4)]
    return [torch.randn(shape, generator=generator) for shape in shapes]
