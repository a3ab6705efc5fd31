"""The delta rule, one line per equation: the specification the kernels must meet."""

import torch
from torch import Tensor


def delta_rule_reference(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, state: Tensor, decay: Tensor | None, reset: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Run the recurrence step by step (paper, Eqs. 2-4, and the decay; the maths is in README.md beside this file).

    Args:
        q: queries [b, t, h, d].
        k: keys [b, t, h, d].
        v: values [b, t, h, e].
        beta: learning rates [b, t, h].
        state: fast weight matrix so far [b, h, d, e].
        decay: share of the matrix that each step keeps [b, t, h]; None keeps all.
        reset: bool [b, t] or None; where true, the matrix is zeroed before that step.

    Returns:
        y [b, t, h, e], each read after its step's update, and the state after the last step [b, h, d, e].
    """
    ys = []
    for t in range(q.shape[1]):
        if reset is not None:
            state = state.masked_fill(reset[:, t, None, None, None], 0.0)
        if decay is not None:
            state = decay[:, t, :, None, None] * state
        v_old = torch.einsum("bhd,bhde->bhe", k[:, t], state)
        write = beta[:, t, :, None] * (v[:, t] - v_old)
        state = state + torch.einsum("bhd,bhe->bhde", k[:, t], write)
        ys.append(torch.einsum("bhd,bhde->bhe", q[:, t], state))
    if not ys:
        return torch.zeros_like(v), state.clone()
    return torch.stack(ys, dim=1), state
