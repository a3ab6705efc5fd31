"""What is known of the features of a task: means, deviations, and the mean of each class, as examples come in.

Nothing here is learnt in a training. All of it is sums, so that a stream can go on for ever and a long support can be
read in pieces with the same result. A number that is missing is NaN, and counts nowhere.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

__all__ = [
    "Moments",
    "Standardised",
    "add_examples",
    "before_and_with",
    "class_distances",
    "inverse",
    "no_moments",
    "scale_of",
    "standardise",
]


class Moments(NamedTuple):
    """Sums over the examples of a task so far."""

    number: Float[Tensor, "*b f"]
    """Examples in which each feature was there."""
    total: Float[Tensor, "*b f"]
    """Their sum."""
    squares: Float[Tensor, "*b f"]
    """The sum of their squares."""
    class_count: Float[Tensor, "*b c f"]
    """The same as `number` for each class."""
    class_total: Float[Tensor, "*b c f"]
    """The same as `total` for each class."""


class Standardised(NamedTuple):
    """A scale: what becomes zero, and what becomes one."""

    mean: Float[Tensor, "*b f"]
    deviation: Float[Tensor, "*b f"]
    """Zero where a feature has shown one value only; it then says nothing."""


def no_moments(batch_size: int, classes: int, features: int, like: Tensor) -> Moments:
    """Make the sums over no examples, in the dtype and on the device of a tensor."""
    number, total, squares = like.new_zeros(3, batch_size, features)
    class_count, class_total = like.new_zeros(2, batch_size, classes, features)
    return Moments(number, total, squares, class_count, class_total)


def add_examples(moments: Moments, x: Float[Tensor, "b t f"], labels: Int[Tensor, "b t"]) -> Moments:
    """Add examples to the sums."""
    there, x = _there(x)
    labelled = F.one_hot(labels, moments.class_count.shape[1]).to(x.dtype).transpose(1, 2)
    parts = (there.sum(dim=1), x.sum(dim=1), x.square().sum(dim=1), labelled @ there, labelled @ x)
    return Moments(*(old + new for old, new in zip(moments, parts, strict=True)))


def before_and_with(
    moments: Moments, x: Float[Tensor, "b t f"], labels: Int[Tensor, "b t"] | None
) -> tuple[Moments, Moments]:
    """Give the sums as each example finds them, and with the features (not the label) of that example among them.

    Args:
        moments: before the first.
        x: examples.
        labels: theirs, if they come one after the other; None where each is asked for as if it came next.

    Returns:
        Two `Moments` of shapes [b, t, ...]; in the second only `number`, `total` and `squares` differ.
    """
    there, x = _there(x)
    plain = (there, x, x.square())
    old = Moments(*(part[:, None] for part in moments))
    if labels is None:
        number, total, squares = (part + new for part, new in zip(old[:3], plain, strict=True))
        return old, old._replace(number=number, total=total, squares=squares)
    with_it = [part + new.cumsum(dim=1) for part, new in zip(old[:3], plain, strict=True)]
    without = [part - new for part, new in zip(with_it, plain, strict=True)]
    labelled = F.one_hot(labels, moments.class_count.shape[1]).to(x.dtype)[..., None]
    # Where nothing is missing, one count serves all features.
    counted = labelled if bool(there.all()) else labelled * there[:, :, None]
    class_count = old.class_count + _sums_before(counted)
    class_total = _sums_before(labelled * x[:, :, None]).add_(old.class_total)
    number, total, squares = without
    before = Moments(number, total, squares, class_count, class_total)
    number, total, squares = with_it
    return before, before._replace(number=number, total=total, squares=squares)


def standardise(moments: Moments) -> Standardised:
    """Give mean and deviation of all examples in the sums."""
    count = moments.number.clamp_min(1)
    mean = moments.total / count
    variance = moments.squares / count - mean.square()
    # What rounding leaves of a feature that never changes is no variance.
    rounding = 64 * torch.finfo(mean.dtype).eps * (moments.squares / count)
    return Standardised(mean, torch.where(variance > rounding, variance, 0.0).sqrt())


def scale_of(x: Float[Tensor, "n f"]) -> Standardised:
    """Give mean and deviation of examples that are there all at once; closer than from sums, whatever their size."""
    there, x = _there(x)
    count = there.sum(dim=0).clamp_min(1)
    mean = x.sum(dim=0) / count
    deviation = (((x - mean) * there).square().sum(dim=0) / count).sqrt()
    # What rounding leaves of a feature that never changes is no deviation.
    rounding = 64 * torch.finfo(x.dtype).eps * x.abs().amax(dim=0)
    return Standardised(mean, torch.where(deviation > rounding, deviation, 0.0))


def class_distances(
    moments: Moments, scale: Standardised, x: Float[Tensor, "*b f"]
) -> tuple[Float[Tensor, "*b c"], Float[Tensor, "*b c"]]:
    """Give the squared distance of standardised examples to the mean of each class, and examples of each class.

    Features that say nothing have a deviation of zero, and those that a class has not shown are at its mean's place
    zero: the mean of all.
    """
    per = inverse(scale.deviation)
    z = ((x - scale.mean) * per).nan_to_num(0.0, 0.0, 0.0)
    count = moments.class_count
    means = moments.class_total / count.clamp_min(1) - scale.mean[..., None, :]
    means.mul_(per[..., None, :]).mul_(count > 0)
    cross = (means @ z[..., None])[..., 0]
    missing = x.isnan()
    if bool(missing.any()):
        means = means.masked_fill(missing[..., None, :], 0.0)
    distances = z.square().sum(dim=-1, keepdim=True) - 2 * cross + means.square_().sum(dim=-1)
    return distances.clamp_min(0.0), count.amax(dim=-1).expand_as(distances)


def inverse(deviation: Tensor) -> Tensor:
    """One over a deviation; zero where there is none."""
    return torch.where(deviation > 0, 1 / deviation.clamp_min(torch.finfo(deviation.dtype).tiny), 0.0)


def _sums_before(each: Tensor) -> Tensor:
    """Sums over the steps before each step; large, and therefore made in place of one another."""
    return each.cumsum(dim=1).sub_(each)


def _there(x: Tensor) -> tuple[Tensor, Tensor]:
    missing: Bool[Tensor, "b t f"] = x.isnan()
    return (~missing).to(x.dtype), x.masked_fill(missing, 0.0)
