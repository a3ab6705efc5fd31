"""The network of tasks on feature vectors: examples of any number of features become a state, which answers.

An example becomes a fixed number of inputs: its standardised features, turned into `width` numbers by a projection that
is no part of what is learnt; the example before it and its label; and how far it is from the mean of each class. So the
network reads any number of features, in any order and on any scale, and classifies each example before it learns it.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from srwm.errors import InputError
from srwm.nn import SequenceModel, SequenceState

from .config import TabularConfig
from .moments import (
    Moments,
    Standardised,
    add_examples,
    before_and_with,
    class_distances,
    inverse,
    no_moments,
    standardise,
)
from .prior import Tasks

__all__ = ["TabularModel", "TabularState", "build_network", "random_projection"]

_LARGEST = 5.0
"""Standardised features beyond it are cut off, as the network reads them."""
_FARTHEST = 30.0
"""Where differences of distances level off."""


class TabularState(NamedTuple):
    """What a task has come to; every part has the batch first."""

    moments: Moments
    """Sums over the examples so far."""
    scale: Standardised
    """The scale of the features, for rows where it is fixed."""
    is_fixed: Tensor
    """Rows whose scale is fixed, bool [b]; the others' is that of the examples so far."""
    projection: Tensor
    """From standardised features to what the network reads [b, f, width]."""
    last: Tensor
    """The features of the last example [b, f]."""
    last_label: Tensor
    """Its label [b]; -1 before the first."""
    memory: SequenceState
    """The state of the sequence network."""


class TabularModel(nn.Module):
    """Classifies feature vectors from labelled examples that it reads one after the other.

    Args:
        config: the recipe; its `prior.most_classes` and `model` say what the network is.

    Attributes:
        config: the recipe.
        sequence: inputs to scores, under the contract of `srwm.nn`.

    Raises:
        ValueError: if an option does not fit.

    Example:
        >>> model = TabularModel(TabularConfig())
        >>> state = model.initial_state(random_projection(2, 7, 32))
        >>> scores, state = model(torch.randn(2, 20, 7), torch.randint(10, (2, 20)), state)
        >>> model.read(torch.randn(2, 5, 7), state).shape
        torch.Size([2, 5, 10])
    """

    def __init__(self, config: TabularConfig) -> None:
        super().__init__()
        self.config = config
        model, self.classes = config.model, config.prior.most_classes
        self.sequence = SequenceModel(
            2 * model.width + 4 * self.classes + 2,
            self.classes + 1,
            memory=model.memory,
            hidden_size=model.hidden_size,
            num_layers=model.num_layers,
            num_heads=model.num_heads,
            ff_size=model.ff_size,
            memory_options=model.memory_options,
        )

    @property
    def weight(self) -> Tensor:
        """A weight, which says on what device and in what dtype the network computes."""
        return next(self.parameters())

    def initial_state(
        self, projection: Float[Tensor, "b f width"], scale: Standardised | None = None, is_fixed: Tensor | None = None
    ) -> TabularState:
        """Return the state of new tasks.

        Args:
            projection: from standardised features to what the network reads; see `random_projection`. Its dtype is the
                one that the sums over examples are kept in: float64 for long streams.
            scale: mean and deviation of each feature, where they are known; None for those of the examples so far.
            is_fixed: rows whose scale is the given one, bool [b]; None for all, if there is one.
        """
        batch_size, features = projection.shape[:2]
        zeros = projection.new_zeros(batch_size, features)
        if is_fixed is None:
            is_fixed = torch.full((batch_size,), scale is not None, device=projection.device)
        return TabularState(
            no_moments(batch_size, self.classes, features, projection),
            scale or Standardised(zeros, zeros + 1),
            is_fixed,
            projection,
            zeros,
            torch.full((batch_size,), -1, device=projection.device),
            self.sequence.initial_state(batch_size),
        )

    def tasks_state(self, tasks: Tasks, projection: Float[Tensor, "b f width"]) -> TabularState:
        """Return the state in which a batch of drawn tasks begins, with the scales that are fixed."""
        b, t, features = tasks.x.shape
        # Features that are not there take none of the variance.
        share = (features / tasks.num_features).sqrt()
        is_fixed = tasks.scaled_by > 0
        among = torch.arange(t) < torch.where(is_fixed, tasks.scaled_by, t)[:, None]
        shown = tasks.x.masked_fill(~among[..., None], torch.nan)
        moments = add_examples(no_moments(b, self.classes, features, tasks.x), shown, tasks.labels)
        device = self.weight.device
        scale = Standardised(*(part.to(device) for part in standardise(moments)))
        return self.initial_state((projection * share[:, None, None]).to(device), scale, is_fixed.to(device))

    def nearest_mean(
        self, x: Float[Tensor, "b t f"], labels: Int[Tensor, "b t"] | None, state: TabularState
    ) -> Float[Tensor, "b t classes"]:
        """Score each example by nearest mean alone: minus the distances that the network reads.

        Args:
            x: features.
            labels: as in `forward`; None as in `read`.
            state: what is known so far.
        """
        last_label = x.new_zeros(x.shape[:2], dtype=torch.int64)
        _, distances, seen = self._inputs(x, x, last_label, state, labels)
        return (-distances).masked_fill(~seen, -torch.inf)

    def forward(
        self, x: Float[Tensor, "b t f"], labels: Int[Tensor, "b t"], state: TabularState
    ) -> tuple[Float[Tensor, "b t classes"], TabularState]:
        """Classify each example, and learn it then.

        Args:
            x: features; NaN where one is missing.
            labels: 0 to classes - 1.
            state: what is known so far.

        Returns:
            Scores (logits) of each example before its label is known, -inf for classes that have not been seen, and the
            state after the last one.
        """
        last = torch.cat([state.last[:, None], x[:, :-1]], dim=1)
        last_label = torch.cat([state.last_label[:, None], labels[:, :-1]], dim=1)
        inputs, distances, seen = self._inputs(x, last, last_label, state, labels)
        y, memory = self.sequence(inputs, state.memory)
        after = add_examples(state.moments, x, labels)
        return self._scores(y, distances, seen), state._replace(
            moments=after, last=x[:, -1], last_label=labels[:, -1], memory=memory
        )

    def read(self, x: Float[Tensor, "b q f"], state: TabularState) -> Float[Tensor, "b q classes"]:
        """Classify each example as if it came next: nothing is learnt from it; see `forward`."""
        last = state.last[:, None].expand(-1, x.shape[1], -1)
        last_label = state.last_label[:, None].expand(-1, x.shape[1])
        inputs, distances, seen = self._inputs(x, last, last_label, state, None)
        return self._scores(self.sequence.read(inputs, state.memory), distances, seen)

    @torch.no_grad()
    def _inputs(
        self, x: Tensor, last: Tensor, last_label: Tensor, state: TabularState, labels: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What the network reads, the distances to the class means, and which classes have been seen [b, t, ...]."""
        before, now = before_and_with(state.moments, x, labels)
        mean, deviation = (
            torch.where(state.is_fixed[:, None, None], fixed[:, None], found)
            for fixed, found in zip(state.scale, standardise(now), strict=True)
        )
        per = inverse(deviation)
        z, z_last = ((part - mean).mul(per).nan_to_num(0.0, 0.0, 0.0) for part in (x, last))
        distances, counts = class_distances(before, Standardised(mean, deviation), x)
        seen = counts > 0
        # Independently of the number of features, a difference of distances says about as much.
        number = (per > 0).sum(dim=-1, keepdim=True).clamp_min(1).to(x.dtype)
        nearest = distances.masked_fill(~seen, torch.inf).amin(dim=-1, keepdim=True).nan_to_num(0.0, 0.0, 0.0)
        distances = ((distances - nearest) * number.rsqrt()).masked_fill(~seen, 0.0)
        distances = _FARTHEST * (distances / _FARTHEST).tanh()
        projected = [part.clamp(-_LARGEST, _LARGEST) @ state.projection for part in (z, z_last)]
        is_first = (last_label < 0)[..., None]
        label = F.one_hot(last_label.clamp_min(0), self.classes).masked_fill(is_first, 0)
        examples = counts.sum(dim=-1, keepdim=True)
        inputs = [
            projected[0],
            projected[1].masked_fill(is_first, 0.0),
            label * self.classes**0.5,
            distances.clamp(max=10.0) * 0.5,
            seen,
            counts.log1p() * 0.5,
            examples.log1p() * 0.5,
            number.clamp(max=self.config.prior.most_features).log() * 0.5,
        ]
        dtype = self.weight.dtype
        return torch.cat([part.to(dtype) for part in inputs], dim=-1), distances.to(dtype), seen

    def _scores(self, y: Tensor, distances: Tensor, seen: Tensor) -> Tensor:
        scores, sharpness = y.split([self.classes, 1], dim=-1)
        if self.config.model.nearest_mean:
            scores = scores - F.softplus(sharpness) * distances
        # Nothing is known before the first example.
        masked: Tensor = scores.masked_fill(~seen & seen.any(dim=-1, keepdim=True), -torch.inf)
        return masked


def build_network(config: TabularConfig) -> TabularModel:
    """Make the network of a recipe.

    Raises:
        InputError: if it cannot be made.
    """
    try:
        return TabularModel(config)
    except ValueError as error:
        raise InputError(f"the model cannot be built: {error}") from error


def random_projection(
    batch_size: int, features: int, width: int, generator: torch.Generator | None = None
) -> Float[Tensor, "b f width"]:
    """Draw projections of standardised features to `width` numbers of variance 1 or so: random rotations.

    They keep distances, and treat all directions alike. Up to `width` features no two share a direction; beyond, each
    group of `width` features has a rotation of its own, so that a feature which comes later takes nothing from those
    before it.
    """
    groups = -(-features // width)
    made = torch.randn(batch_size, groups, width, width, generator=generator)
    rotations, r = torch.linalg.qr(made)
    # With signs that do not depend on how a library computes it.
    rotations = rotations * r.diagonal(dim1=-2, dim2=-1).sign()[..., None, :]
    kept: Tensor = rotations.flatten(1, 2)[:, :features]
    return kept * math.sqrt(width / features)
