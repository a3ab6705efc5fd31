"""N-way K-shot episodes, drawn on the device in a few batched operations.

What is drawn is a pure function of (seed, rng_stream, step): no worker processes, no state, nothing to save.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from srwm.errors import InputError

from .features import FeatureSet
from .image_set import ImageSet
from .random import random_bits, random_integers, stream_key

_BLOCKS = 4
"""Independent sets of random numbers that each episode uses: classes, images, order of the support, of the queries."""


class Episodes(NamedTuple):
    """Episodes as places in an image set: where each image lies, and its label in the episode.

    The axes `*s b` are those of the drawing: steps, if several were drawn at once, and the batch.
    """

    support: Int[Tensor, "*s b n"]
    """Images to learn from, N times K in random order."""
    support_labels: Int[Tensor, "*s b n"]
    """Their labels, 0 to N - 1."""
    query: Int[Tensor, "*s b q"]
    """Images to be classified; none of them is in the support."""
    query_labels: Int[Tensor, "*s b q"]
    """Their labels."""


def draw_episodes(
    image_set: ImageSet | FeatureSet,
    steps: Int[Tensor, "*s"],
    *,
    batch_size: int,
    ways: int,
    shots: int,
    queries: int = 1,
    seed: int,
    rng_stream: int = 0,
) -> Episodes:
    """Draw a batch of episodes for each of the given steps.

    Classes are drawn without replacement and in random order, which is also a random permutation of the labels;
    support and query images of a class are distinct; the support is shuffled. The queries go through the classes in
    random order, again and again, so a single query has a random class.

    Args:
        image_set: what to draw from: images, or feature vectors.
        steps: numbers of the steps, on the device where the episodes are wanted; any shape, () for one step.
        batch_size: episodes a step.
        ways: N, classes of an episode.
        shots: K, support images of each class.
        queries: query images of an episode, all classes together.
        seed: seed of the run.
        rng_stream: number that keeps training, validation and test apart.

    Returns:
        Episodes of shape [*steps, batch_size, ...].

    Raises:
        InputError: if the set has too few classes, or a class too few images.
    """
    check_enough(image_set, ways, shots, queries)
    per_class = shots + -(-queries // ways)
    device = steps.device
    blocks = torch.arange(batch_size * _BLOCKS, device=device).reshape(batch_size, _BLOCKS)
    keys = stream_key(seed, rng_stream, steps)[..., None, None] + blocks * 0x5851F42D4C957F2D
    class_key, image_key, support_key, query_key = keys.unbind(dim=-1)

    number = torch.full((*class_key.shape, ways), image_set.num_classes, device=device)
    classes = _without_replacement(class_key, number)
    counts = image_set.counts.to(device)[classes]
    # Each class of each episode draws its images by itself.
    each_class = image_key[..., None] + torch.arange(ways, device=device) * 0x2545F4914F6CDD1D
    images = _without_replacement(each_class, counts[..., None].expand(*counts.shape, per_class))
    images = images + image_set.starts.to(device)[classes][..., None]

    labels = torch.arange(ways, device=device)[:, None].expand(*images.shape)
    order = _shuffled(support_key, ways * shots)
    support, support_labels = (values[..., :shots].flatten(-2).gather(-1, order) for values in (images, labels))
    # [rounds, ways]: each round shuffles the classes again.
    rounds = per_class - shots
    at = torch.stack([_shuffled(query_key + i, ways) for i in range(rounds)], dim=-2)
    query, query_labels = (
        values[..., shots:].transpose(-1, -2).gather(-1, at).flatten(-2)[..., :queries] for values in (images, labels)
    )
    return Episodes(support, support_labels, query, query_labels)


def check_enough(image_set: ImageSet | FeatureSet, ways: int, shots: int, queries: int) -> None:
    """Refuse a set that has too few classes or images for such episodes."""
    for name, value in (("ways", ways), ("shots", shots), ("queries", queries)):
        if value < 1:
            raise InputError(f"{name}={value}; expected at least 1")
    if image_set.num_classes < ways:
        raise InputError(
            f"{image_set.name} has {image_set.num_classes} classes; {ways}-way episodes need at least {ways}"
        )
    per_class = shots + -(-queries // ways)
    poorest, fewest = image_set.smallest_class
    if fewest < per_class:
        raise InputError(
            f"class {poorest!r} of {image_set.name} has {fewest} images; "
            f"{shots} to learn from and {per_class - shots} to ask for need {per_class}"
        )


def _without_replacement(key: Tensor, below: Tensor) -> Tensor:
    """Draw distinct integers, in random order; all entries of a row of `below` [*keys, n] are the same."""
    drawn = random_integers(key, below - torch.arange(below.shape[-1], device=below.device))
    chosen = drawn[..., :1]
    for i in range(1, drawn.shape[-1]):
        # The i-th number counts only what is left over: step over each earlier choice, the smallest first.
        new = drawn[..., i : i + 1]
        for earlier in chosen.sort(dim=-1).values.split(1, dim=-1):
            new = new + (new >= earlier)
        chosen = torch.cat([chosen, new], dim=-1)
    return chosen


def _shuffled(key: Tensor, size: int) -> Tensor:
    """A random order of `size` things for each key."""
    return random_bits(key, (size,)).argsort(dim=-1, stable=True)
