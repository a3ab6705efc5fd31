"""How well a model follows a stream: by instance, by segment, by step, and after a change.

All work on whole batches of streams; `right` says where the model's best guess was the label.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

INSTANCES = (1, 2, 3, 5, 10)
"""The instances of a class that the paper reports on; the first is a guess, because its label was never shown."""

FINAL_PART = 5
"""The final level of a segment is its accuracy over the last fifth of its steps."""
RECOVERED = 0.9
"""A model has recovered when it is this near to the final level."""
ABOVE_CHANCE = 1.15
"""Below so many times the accuracy of guessing, a model has learnt nothing."""


def instance_numbers(
    labels: Int[Tensor, "*s t"], segment: Int[Tensor, "*s t"], *, groups: int, ways: int
) -> Int[Tensor, "*s t"]:
    """Say which image of its class within its segment each step is, counted from 1.

    Args:
        labels: 0 to ways - 1.
        segment: number of the segment of each step.
        groups: segments times ways.
        ways: classes of a segment.

    Example:
        >>> labels, segment = torch.tensor([1, 0, 1, 1, 1]), torch.tensor([0, 0, 0, 1, 1])
        >>> instance_numbers(labels, segment, groups=4, ways=2)
        tensor([1, 1, 2, 1, 2])
    """
    group = segment * ways + labels
    is_group = group[..., None] == torch.arange(groups, device=group.device)
    seen = is_group.cumsum(dim=-2, dtype=torch.int32)
    return seen.gather(-1, group[..., None])[..., 0].long()


def count_right(
    right: Bool[Tensor, "n t"],
    instance: Int[Tensor, "n t"],
    where: Bool[Tensor, "n t"],
    instances: Sequence[int] = INSTANCES,
) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k"]]:
    """Count correct answers of each stream on given instances of a class.

    Args:
        right: whether each answer is right.
        instance: what `instance_numbers` gave.
        where: the steps that count, such as those of one segment.
        instances: the numbers k that are asked for; 0 stands for all.

    Returns:
        How many answers were right, and how many there were.
    """
    wanted = torch.tensor(instances, device=instance.device)
    asked = ((instance[..., None] == wanted) | (wanted == 0)) & where[..., None]
    return (asked & right[..., None]).sum(dim=1).float(), asked.sum(dim=1).float()


def accuracy_by_step(right: Bool[Tensor, "n t"]) -> Float[Tensor, "t"]:
    """Accuracy at each step of the stream, over all streams."""
    return right.double().mean(dim=0)


def final_level(curve: Float[Tensor, "t"]) -> float:
    """Accuracy over the last fifth of a segment's steps.

    Args:
        curve: accuracy at each step of the segment.
    """
    return float(curve[-max(1, len(curve) // FINAL_PART) :].mean())


def steps_to_recover(
    curve: Float[Tensor, "t"], *, window: int, chance: float = 0.0, share: float = RECOVERED
) -> int | None:
    """Say how many steps after a change of data set a model needs to be near its final level again.

    That is the first number of steps whose last `window` have together at least `share` of the final level.

    Args:
        curve: accuracy at each step of the segment after the change.
        window: steps that are taken together; as many as there are classes is a good choice.
        chance: accuracy of guessing; a model that ends near it has nothing to recover.
        share: of the final level.

    Returns:
        Steps after the change, at least `window`; None if the segment ends before, or at chance level.
    """
    if len(curve) < window or final_level(curve) < ABOVE_CHANCE * chance:
        return None
    running = curve.unfold(0, window, 1).mean(dim=-1)
    # The sum of a window is never quite exact.
    reached = running >= share * final_level(curve) - 1e-9
    return window + int(reached.byte().argmax()) if bool(reached.any()) else None


def unused_label_accuracy(ways: int) -> float:
    """Accuracy on first instances of a model that guesses among the labels that have not come up yet.

    Example:
        >>> round(unused_label_accuracy(5), 3)
        0.457
    """
    return sum(1 / left for left in range(1, ways + 1)) / ways
