"""Numbers about keys, learning rates and matrices, as functions of tensors."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor


def entropy(weights: Float[Tensor, "*axes n"]) -> Float[Tensor, "*axes"]:
    """Say how spread out weights are: their Shannon entropy in nats, after they are scaled to sum to one.

    0 for a single one that is not zero, log n where all n are equal; 0 where all are zero.
    """
    share = weights / weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    terms: Tensor = torch.special.entr(share)
    return terms.sum(dim=-1)


def effective_rank(singular_values: Float[Tensor, "*axes n"]) -> Float[Tensor, "*axes"]:
    """Say how many directions a matrix uses: exp of the entropy of its singular values, scaled to sum to one.

    It is the definition of Roy and Vetterli (2007), of the singular values themselves, not of their squares: 1 for a
    matrix of rank one, n for one with n equal singular values. A zero matrix has 0.
    """
    return torch.where(singular_values.sum(dim=-1) > 0, entropy(singular_values).exp(), 0.0)


def singular_values(matrices: Float[Tensor, "*axes d m"]) -> Float[Tensor, "*axes n"]:
    """Singular values of each matrix, largest first; n is the smaller of d and m."""
    values: Tensor = torch.linalg.svdvals(matrices)
    return values


def log_of_kept(forget: Float[Tensor, "*axes"]) -> Float64[Tensor, "*axes"]:
    """Give the logarithm of the share that a step keeps; that of zero is a large number, so that it has differences."""
    return (1 - forget.double()).clamp_min(torch.finfo(torch.float64).tiny).log()


def relative(part: Float[Tensor, "*axes"], whole: Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
    """Give the ratio of two sizes; 0 where both are zero."""
    return torch.where((part == 0) & (whole == 0), 0.0, part / whole)
