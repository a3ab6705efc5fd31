"""Bootstrapped training: what a model knows after its support learns from what it knows after more images.

Irie and Schmidhuber (2023), "Accelerating neural self-improvement via bootstrapping", arXiv 2305.01547.

There is no such thing for streams (`srwm.sequential`): there, whatever comes later is trained by a loss of its own, and
asked about an image again, a model has been told its label in the meantime.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from srwm.data.random import random_bits, stream_key
from srwm.nn import SequenceModel, SequenceState

from .config import BootstrapConfig
from .model import FewShotModel


class Labelled(NamedTuple):
    """Features of images with their labels."""

    features: Float[Tensor, "b n f"]
    labels: Int[Tensor, "b n"]


class Bootstrapped(NamedTuple):
    """What came of a batch."""

    loss: Float[Tensor, ""]
    """The whole loss."""
    scores: Float[Tensor, "b q ways"]
    """Answers after the support."""
    future_scores: Float[Tensor, "b q ways"]
    """Answers after the further images, too."""


def bootstrapped_loss(
    model: FewShotModel, support: Labelled, future: Labelled, query: Labelled, config: BootstrapConfig
) -> Bootstrapped:
    """Learn from the support, answer; learn from further images, answer again; and compare.

    Args:
        model: the network.
        support: what it learns from first.
        future: what it learns from then.
        query: what is asked both times; asking changes no state.
        config: what is compared with what, and how much each part counts.
    """
    state = model.learn_features(*support)
    scores = model.read_features(query.features, state)
    future_state = model.learn_features(*future, state)
    future_scores = model.read_features(query.features, future_state)
    wanted = query.labels.flatten()
    if config.target == "answers":
        pulled = divergence(scores.flatten(0, 1), future_scores.flatten(0, 1))
    else:
        pulled = state_distance(model.sequence, state, future_state)
    loss = (
        config.support_weight * F.cross_entropy(scores.flatten(0, 1), wanted)
        + config.future_weight * F.cross_entropy(future_scores.flatten(0, 1), wanted)
        + config.weight * pulled
    )
    return Bootstrapped(loss, scores, future_scores)


def divergence(scores: Float[Tensor, "n ways"], target: Float[Tensor, "n ways"]) -> Float[Tensor, ""]:
    """KL(target || answers), the mean over rows; no gradient goes through the target."""
    return F.kl_div(
        scores.log_softmax(dim=-1), target.detach().log_softmax(dim=-1), reduction="batchmean", log_target=True
    )


def state_distance(module: SequenceModel, state: SequenceState, target: SequenceState) -> Float[Tensor, ""]:
    """Mean squared difference of each part of a state from a target that no gradient goes through, the sum over parts.

    Args:
        module: the network whose states they are.
        state: what is pulled.
        target: where to.
    """
    pairs = zip(module.state_parts(state), module.state_parts(target.detach()), strict=True)
    return torch.stack([F.mse_loss(near, far) for near, far in pairs]).sum()


def shuffled_first(values: Int[Tensor, "*s b q"], count: int, key: Int[Tensor, "*s"]) -> Int[Tensor, "*s b q"]:
    """Shuffle the first `count` values of each row, each row in a way of its own; equal keys give equal orders."""
    order = random_bits(key, (values.shape[-2], count)).argsort(dim=-1, stable=True)
    return torch.cat([values[..., :count].gather(-1, order), values[..., count:]], dim=-1)


def order_key(seed: int, steps: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
    """What the order of the further images of some steps depends on."""
    # Far from the streams of random numbers that episodes and test sets use.
    return stream_key(seed, 1 << 20, steps)
