"""The delta rule: a fast weight matrix that moves what it holds under a key towards a given value."""

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
from .reference import delta_rule_reference

__all__ = ["delta_rule"]


def delta_rule(
    q: Float[Tensor, "b t h d"],
    k: Float[Tensor, "b t h d"],
    v: Float[Tensor, "b t h e"],
    beta: Float[Tensor, "b t h"],
    state: Float[Tensor, "b h d e"] | None = None,
    *,
    decay: Float[Tensor, "b t h"] | None = None,
    reset: Bool[Tensor, "b t"] | None = None,
    backend: Backend = "auto",
) -> tuple[Float[Tensor, "b t h e"], Float[Tensor, "b h d e"]]:
    """Run a fast weight matrix under the delta rule over a sequence.

    At each step the matrix moves what it holds under `k` towards `v` by the share `beta`, and is then read with `q`.
    With `decay` it first forgets: the gated delta rule (Yang, Kautz, Hatamizadeh, 2025). The maths, forward and
    backward, is in `README.md` beside this file.

    Args:
        q: queries [b, t, h, d].
        k: keys [b, t, h, d]; the rule is stable when their entries are not negative and sum to one.
        v: values [b, t, h, e].
        beta: learning rates [b, t, h], in (0, 1); any other are taken, too. With keys of unit length, rates up to 2 do
            not make the matrix grow, and let it turn over what lies along a key.
        state: the fast weight matrix so far [b, h, d, e]; None is zero.
        decay: share of the matrix that each step keeps [b, t, h], in [0, 1]; None keeps all of it.
        reset: bool [b, t]; where true, the matrix is zeroed before that step, and no gradient crosses it.
        backend: "auto" takes the fastest that can run here; the others are "reference", "cpu" and "triton".

    Returns:
        y [b, t, h, e] in the dtype of `v`, each read after its step's update, and the state after the last step
        [b, h, d, e], which is kept in float32 for half-precision inputs.

    Raises:
        ValueError: if a shape, dtype or device does not fit, or the backend cannot run here.
        RuntimeError: if a derivative is asked for that a fast backend does not have: a second one, one in forward mode,
            or one by `torch.func`. The reference has them.

    Example:
        >>> q, k, v = torch.randn(3, 2, 5, 3, 4).unbind(0)
        >>> y, state = delta_rule(q.softmax(-1), k.softmax(-1), v, torch.full((2, 5, 3), 0.5))
        >>> y.shape, state.shape
        (torch.Size([2, 5, 3, 4]), torch.Size([2, 3, 4, 4]))
    """
    _check(q, k, v, beta, state, decay, reset)
    b, _, h, d = q.shape
    e = v.shape[-1]
    chosen = choose_backend(backend, q.device, max(d, e))
    given = [tensor for tensor in (q, k, v, beta, state, decay) if tensor is not None]
    dtype = state_dtype(*given)
    if state is not None:
        state = cast(state, dtype)
    if decay is not None and chosen != "triton":
        decay = cast(decay, dtype)
    if chosen == "reference":
        start = torch.zeros(b, h, d, e, dtype=dtype, device=q.device) if state is None else state
        with without_autocast(q.device):
            y, end = delta_rule_reference(
                cast(q, dtype), cast(k, dtype), cast(v, dtype), cast(beta, dtype), start, decay, reset
            )
        return cast(y, v.dtype), end
    refuse_derivative_transforms("delta_rule")
    if chosen == "cpu":
        q, k, beta = cast(q, dtype), cast(k, dtype), cast(beta, dtype)
        y, end = _library.run(q, k, cast(v, dtype), beta, state, decay, reset, chosen)
        return cast(y, v.dtype), end
    return _library.run(q, k, v, beta, state, decay, reset, chosen)


def _check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    state: Tensor | None,
    decay: Tensor | None,
    reset: Tensor | None,
) -> None:
    check_tensor("q", q)
    check_tensor("v", v)
    if q.dim() != 4 or q.shape[-1] < 1:
        raise ValueError(f"q has shape {list(q.shape)}; expected [b, t, h, d] with d at least 1")
    b, t, h, d = q.shape
    check_shape("k", k, (b, t, h, d), "[b, t, h, d]")
    if v.dim() != 4 or v.shape[:3] != (b, t, h) or v.shape[3] < 1:
        raise ValueError(f"v has shape {list(v.shape)}; expected [b, t, h, e] = [{b}, {t}, {h}, e] with e at least 1")
    check_shape("beta", beta, (b, t, h), "[b, t, h]")
    if state is not None:
        check_shape("state", state, (b, h, d, v.shape[3]), "[b, h, d, e]")
    if decay is not None:
        check_shape("decay", decay, (b, t, h), "[b, t, h]")
    check_floating(q=q, k=k, v=v, beta=beta, state=state, decay=decay)
    check_reset(reset, b, t, q.device)


def sample_inputs(generator: torch.Generator) -> list[Tensor]:
    """Small inputs of the operator, in its order, by which `srwm doctor` tries its backends."""
    b, t, h, d, e = 2, 7, 2, 5, 3
    shapes = [(b, t, h, d), (b, t, h, d), (b, t, h, e), (b, h, d, e)]
    q, k, v, state = (torch.randn(shape, generator=generator) for shape in shapes)
    beta = torch.rand(b, t, h, generator=generator)
    return [q.softmax(dim=-1), k.softmax(dim=-1), v, beta, state]
