"""A prior over classification tasks: random feature vectors with random rules that label them.

A batch is a pure function of (seed, rng_stream, step), as all data of a training is: what a run has drawn needs no
file. Half of the tasks are mixtures of Gaussians with random covariances; in the others random features, themselves
correlated, are labelled by a small random network, by one number of such a network that is cut into ranges, or by a
tree of thresholds. Then come features without meaning, warped and rounded ones, frequencies of classes, and wrong
labels. (The idea of learning from such a prior is that of prior-data fitted networks; see Hollmann, Müller,
Eggensperger and Hutter, "TabPFN", ICLR 2023.)
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.data.random import stream_key

from .config import PriorConfig

__all__ = ["Tasks", "draw_tasks"]

TRAINING, TEST, CHOICE = range(3)
"""Streams of tasks: those of the training, of its test, and those by which settings were chosen."""

_FACTORS = 6
"""Causes that correlated features have in common, at most."""
_PARTS = 3
"""Gaussians that a class is made of, at most."""
_HIDDEN = 12
"""Units of a random network that labels."""
_SPLITS = 4
"""Thresholds of a tree, at most; its leaves are told apart by all of them."""


class Tasks(NamedTuple):
    """A batch of tasks, in one order of their examples."""

    x: Float[Tensor, "b t f"]
    """Features; zeros from a task's own number of them on."""
    labels: Int[Tensor, "b t"]
    """Classes, numbered at random below the head's number."""
    num_features: Int[Tensor, "b"]
    """Features of each task."""
    scaled_by: Int[Tensor, "b"]
    """Examples whose statistics standardise all of a task; 0 for those of the examples so far."""


def draw_tasks(
    config: PriorConfig, *, seed: int, rng_stream: int, step: int, batch_size: int, examples: int | None = None
) -> Tasks:
    """Draw a batch of tasks.

    Args:
        config: what tasks there are.
        seed: of the run.
        rng_stream: `TRAINING`, `TEST` or `CHOICE`.
        step: number of the batch.
        batch_size: tasks.
        examples: of each task; None for as many as the configuration says.
    """
    key = stream_key(seed, rng_stream, torch.tensor(step))
    return _Draw(config, torch.Generator().manual_seed(int(key)), batch_size, examples or config.examples).tasks()


class _Draw:
    """A batch in the making: the numbers that all its parts share, and the generator that they come from."""

    def __init__(self, config: PriorConfig, generator: torch.Generator, batch_size: int, examples: int) -> None:
        self.config, self.generator = config, generator
        self.b, self.t = batch_size, examples
        # A batch costs as much as its widest task: few batches have tasks of the most features.
        self.f = min(math.ceil(4 * (config.most_features / 4) ** float(self.uniform(1))), config.most_features)
        self.num_features = (self.uniform(batch_size).sqrt() * math.log(self.f + 1)).exp().long().clamp(1, self.f)
        # Few classes more often than many; of the features, small numbers as often as large ones or so.
        self.classes = 2 + (self.uniform(batch_size).square() * (config.most_classes - 1)).long()
        self.present = (torch.arange(self.f) < self.num_features[:, None]).float()
        chance = self.uniform(batch_size, 1) * config.irrelevant * (self.uniform(batch_size, 1) < 0.6)
        relevant = self.present * (self.uniform(batch_size, self.f) >= chance)
        relevant[:, 0] = 1.0
        self.relevant = relevant

    def tasks(self) -> Tasks:
        """Draw everything."""
        is_mixture = self.uniform(self.b) < 0.5
        mixed, mixed_labels = self.mixture()
        plain = self.correlated()
        ruled_labels = self.ruled(plain)
        x = torch.where(is_mixture[:, None, None], mixed, plain)
        labels = torch.where(is_mixture[:, None], mixed_labels, ruled_labels)
        labels = self.in_random_slots(self.with_noise(labels))
        x = self.warped(x) * self.present[:, None]
        place = 3 + (self.uniform(self.b) * (self.t - 3)).long()
        scaled_by = torch.where(self.uniform(self.b) < self.config.whole_support, place, 0)
        return Tasks(x, labels, self.num_features, scaled_by)

    def mixture(self) -> tuple[Tensor, Tensor]:
        """Each class one to three Gaussians, all with a covariance in common, some with one of their own beside it."""
        labels = self.frequent_classes()
        c, p = self.config.most_classes, _PARTS
        parts = 1 + (self.uniform(self.b, c).square() * p).long()
        part = (self.uniform(self.b, self.t) * parts.gather(1, labels)).long()
        # How far apart classes lie is drawn as their distance, whatever the number of features.
        distance = self.between(0.7, 7.0)
        spread = distance / (2 * self.relevant.sum(dim=1)).sqrt()
        means = self.normal(self.b, c, 1, self.f) * spread[:, None, None, None]
        inner = self.normal(self.b, c, p, self.f) * (spread * self.uniform(self.b))[:, None, None, None]
        centres = ((means + inner) * self.relevant[:, None, None]).flatten(1, 2)
        at = (labels * p + part)[..., None].expand(-1, -1, self.f)
        own = torch.where(self.uniform(self.b, 1) < 0.4, self.normal(self.b, c).mul(0.5).exp(), torch.ones(()))
        noise = self.correlated() * own.gather(1, labels)[..., None]
        return centres.gather(1, at) + noise, labels

    def correlated(self) -> Tensor:
        """Features of variance 1 or so: a share of each comes from causes in common, some with heavy tails."""
        causes = self.normal(self.b, self.t, _FACTORS)
        loads = self.normal(self.b, _FACTORS, self.f) / _FACTORS**0.5
        share = self.uniform(self.b, 1, 1) * (self.uniform(self.b, 1, 1) < 0.7)
        own = self.normal(self.b, self.t, self.f)
        x = (1 - share).sqrt() * own + share.sqrt() * (causes @ loads)
        heavy = (self.uniform(self.b, 1, 1) < 0.25) * 0.5
        x = x * (heavy * self.normal(self.b, self.t, 1)).exp()
        # Directions of a data set are seldom equally wide.
        width = (self.normal(self.b, 1, self.f) * self.uniform(self.b, 1, 1)).exp()
        made: Tensor = x * width / width.square().mean(dim=-1, keepdim=True).sqrt()
        return made

    def ruled(self, x: Tensor) -> Tensor:
        """Labels of features by a random network, by ranges of one of its numbers, or by a tree of thresholds."""
        scale = x.std(dim=1, keepdim=True).clamp_min(1e-6)
        seen = x / scale * self.relevant[:, None]
        per = self.relevant.sum(dim=1).rsqrt()[:, None, None]
        linear = seen @ self.normal(self.b, self.f, self.config.most_classes) * per
        hidden = (seen @ self.normal(self.b, self.f, _HIDDEN) * per * self.between(0.5, 3.0)[:, None, None]).tanh()
        bent = hidden @ self.normal(self.b, _HIDDEN, self.config.most_classes) / _HIDDEN**0.5
        straight = self.uniform(self.b, 1, 1)
        scores = straight * linear + (1 - straight) * bent
        bias = self.normal(self.b, 1, self.config.most_classes) * (self.uniform(self.b, 1, 1) < self.config.imbalance)
        absent = torch.arange(self.config.most_classes) >= self.classes[:, None]
        network = (scores + 0.5 * bias).masked_fill(absent[:, None], -torch.inf).argmax(dim=-1)
        kind = self.uniform(self.b, 1)
        return torch.where(kind < 0.5, network, torch.where(kind < 0.75, self.ranges(scores[..., 0]), self.tree(seen)))

    def ranges(self, number: Tensor) -> Tensor:
        """Cut a number into as many ranges as there are classes."""
        order = number.argsort(dim=1).argsort(dim=1) / self.t
        edge = self.uniform(self.b, self.config.most_classes) * 0.8 + 0.1
        even = torch.arange(1, self.config.most_classes + 1) / self.classes[:, None]
        edge = torch.where(self.uniform(self.b, 1) < self.config.imbalance, edge, even)
        edge = edge.masked_fill(torch.arange(self.config.most_classes) >= self.classes[:, None] - 1, 2.0)
        return (order[..., None] > edge[:, None]).sum(dim=-1)

    def tree(self, x: Tensor) -> Tensor:
        """Ask whether each of one to four features is above a threshold; each pattern of answers has a class."""
        chosen = torch.multinomial(self.relevant, _SPLITS, replacement=True, generator=self.generator)
        asked = x.gather(2, chosen[:, None].expand(-1, self.t, -1))
        answers = (asked > 0.6 * self.normal(self.b, 1, _SPLITS)).long()
        depth = 1 + (self.uniform(self.b, 1, 1) * _SPLITS).long()
        place = torch.arange(_SPLITS)
        leaf = (answers * (place < depth) << place).sum(dim=-1)
        leaves = (self.uniform(self.b, 1 << _SPLITS) * self.classes[:, None]).long()
        return leaves.gather(1, leaf)

    def frequent_classes(self) -> Tensor:
        """Draw labels: each class once in every round, equally frequent, or some more frequent than others."""
        c = self.config.most_classes
        there = torch.arange(c) < self.classes[:, None]
        uneven = (self.normal(self.b, c) * (self.uniform(self.b, 1) < self.config.imbalance)).exp() * there
        free = torch.multinomial(uneven, self.t, replacement=True, generator=self.generator)
        rounds = self.uniform(self.b, -(-self.t // 2), c).masked_fill(~there[:, None], 2.0).argsort(dim=-1)
        at = torch.arange(self.t)
        in_turn = rounds.flatten(1).gather(1, at // self.classes[:, None] * c + at % self.classes[:, None])
        return torch.where(self.uniform(self.b, 1) < 0.4, in_turn, free)

    def with_noise(self, labels: Tensor) -> Tensor:
        """Replace a share of the labels of some tasks."""
        share = self.uniform(self.b, 1) * self.config.label_noise * (self.uniform(self.b, 1) < 0.3)
        other = (self.uniform(self.b, self.t) * self.classes[:, None]).long()
        return torch.where(self.uniform(self.b, self.t) < share, other, labels)

    def in_random_slots(self, labels: Tensor) -> Tensor:
        """Number the classes at random, over all outputs of the head."""
        return self.uniform(self.b, self.config.most_classes).argsort(dim=1).gather(1, labels)

    def warped(self, x: Tensor) -> Tensor:
        """Bend some features by a monotone function, round others, and cut a few into two values."""
        kind = self.uniform(self.b, 1, self.f) + (self.uniform(self.b, 1, 1) < 0.5)
        bent = torch.where(kind < 0.1, x.clamp(max=4).exp(), torch.where(kind < 0.2, x * x.abs(), x))
        coarse = torch.where(kind < 0.3, (x * 1.5).round(), (x > 0.5).float())
        return torch.where(kind < 0.2, bent, torch.where(kind < 0.4, coarse, x))

    def between(self, low: float, high: float) -> Tensor:
        """A positive number for each task, drawn evenly on a logarithmic scale."""
        return low * (self.uniform(self.b) * math.log(high / low)).exp()

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)
