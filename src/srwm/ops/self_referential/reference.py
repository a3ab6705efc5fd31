"""The self-referential recurrence, one line per equation: the specification the kernels must meet."""

import torch
from torch import Tensor


def self_referential_reference(
    x: Tensor, weight: Tensor, state: Tensor, reset: Tensor | None, learning_rates: int
) -> tuple[Tensor, Tensor]:
    """Run the recurrence step by step (paper, Eqs. 5-8; the maths is in README.md beside this file).

    Args:
        x: inputs [b, t, h, d].
        weight: initial matrix [h, d, m], columns y | q | k | beta.
        state: change of the matrix so far [b, h, d, m].
        reset: bool [b, t] or None; where true, the change is zeroed before that step.
        learning_rates: 4 (one for each of y, q, k, beta) or 1 (shared).

    Returns:
        y [b, t, h, out] and the state after the last step [b, h, d, m].
    """
    d, m = weight.shape[1:]
    columns = [m - 2 * d - learning_rates, d, d, learning_rates]
    ys = []
    for t in range(x.shape[1]):
        if reset is not None:
            state = state.masked_fill(reset[:, t, None, None, None], 0.0)
        w = weight + state
        y, q, k, beta = torch.einsum("bhd,bhdm->bhm", x[:, t], w).split(columns, dim=-1)
        q, k, beta = q.softmax(dim=-1), k.softmax(dim=-1), beta.sigmoid()
        difference = torch.einsum("bhd,bhdm->bhm", q - k, w)
        write = spread(beta, columns) * difference
        state = state + torch.einsum("bhd,bhm->bhdm", k, write)
        ys.append(y)
    if not ys:
        return x.new_zeros(*x.shape[:3], columns[0]), state.clone()
    return torch.stack(ys, dim=1), state


def spread(beta: Tensor, columns: list[int]) -> Tensor:
    """Give every column of the matrix the learning rate of its sub-matrix: [..., 4 or 1] -> [..., m]."""
    rates = beta.split(1, dim=-1) * (len(columns) if beta.shape[-1] == 1 else 1)
    return torch.cat([rate.expand(*beta.shape[:-1], n) for rate, n in zip(rates, columns, strict=True)], dim=-1)
