"""Prototypical losses, by which an encoder learns that images of a class lie near each other."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

__all__ = ["leave_one_out_losses", "prototype_logits", "prototypical_loss"]


def prototype_logits(support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
    """Minus the squared distance of each query from the mean of each class, up to a constant for each query.

    Snell, Swersky and Zemel (2017), "Prototypical networks".

    Args:
        support: features [b, n, f].
        labels: their labels [b, n]; every class is there as often.
        query: features [b, q, f].
        ways: classes.

    Returns:
        Scores [b, q, ways], on the scale of one feature times the square root of their number.
    """
    of_class = F.one_hot(labels, ways).to(support.dtype).transpose(1, 2)
    means = of_class @ support / (labels.shape[1] / ways)
    # |q - m|^2 written out; |q|^2 is the same for all classes and falls out of the softmax.
    scores: Tensor = (2 * query @ means.transpose(1, 2) - means.square().sum(dim=-1)[:, None]) * support.shape[
        -1
    ] ** -0.5
    return scores


def prototypical_loss(support: Tensor, labels: Tensor, query: Tensor, wanted: Tensor, ways: int) -> Tensor:
    """Mean cross-entropy of telling queries by their distance from the mean of each class; see `prototype_logits`."""
    logits = prototype_logits(support, labels, query, ways)
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def leave_one_out_losses(
    features: Float[Tensor, "b t f"],
    labels: Int[Tensor, "b t"],
    segment: Int[Tensor, "b t"],
    mask: Bool[Tensor, "b t"],
    *,
    ways: int,
    segments: int,
) -> Float[Tensor, "b t"]:
    """Cross-entropy of telling each image by its distance from the mean of each class of its segment.

    After Snell, Swersky and Zemel (2017), "Prototypical networks". An image is left out of the mean of its own class.

    Returns:
        The loss of each image; zero where it does not count, or no other image of its class does.
    """
    group = segment * ways + labels
    numbers = torch.arange(segments * ways, device=group.device)
    is_own = group[..., None] == numbers
    members = (is_own & mask[..., None]).to(features.dtype)
    counts = members.sum(dim=1)
    means = torch.einsum("btg,btf->bgf", members, features) / counts.clamp(min=1)[..., None]
    products = torch.einsum("btf,bgf->btg", features, means)
    distances = features.square().sum(-1, keepdim=True) - 2 * products + means.square().sum(-1)[:, None]
    # Without the image itself, the mean of its class is n / (n - 1) times as far away.
    without = (counts / (counts - 1).clamp(min=1)).square()[:, None]
    scores = -torch.where(is_own, without, 1.0) * distances * features.shape[-1] ** -0.5
    is_there = (numbers // ways == segment[..., None]) & (counts > 0)[:, None]
    has_other = mask & (counts.gather(1, group) > 1)
    # Rows that do not count may have no class at all; they get finite scores, so that no NaN goes back.
    scores = scores.masked_fill(~is_there, -torch.inf).masked_fill(~has_other[..., None], 0.0)
    each = F.cross_entropy(scores.flatten(0, 1), group.flatten(), reduction="none").reshape(group.shape)
    return each * has_other
