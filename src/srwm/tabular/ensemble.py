"""A network asked several times: each member numbers classes, turns features and orders examples in its own way.

What a network says should depend on none of the three. The mean over members depends on them less, and is better.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.data.random import stream_key

from .moments import Standardised, inverse, scale_of
from .network import TabularModel, TabularState, random_projection

__all__ = ["Ensemble", "EnsembleState", "principal_projection"]

_AT_ONCE = 1 << 22
"""Numbers that the means of classes may take up at once while examples are read."""


class EnsembleState(NamedTuple):
    """What the members know, the member first."""

    members: TabularState
    slots: Int[Tensor, "m classes"]
    """The output of the head that stands for each class."""


class Ensemble:
    """Members that read the same examples with a network in common; numbers are kept in float64.

    Args:
        model: the network, which is put into evaluation mode.
        members: how many; 1 for the network by itself.
        seed: of what they do differently.

    Example:
        >>> from srwm.tabular import TabularConfig
        >>> ensemble = Ensemble(TabularModel(TabularConfig()), members=4)
        >>> state = ensemble.start(features=3)
        >>> state = ensemble.learn(torch.randn(9, 3), torch.randint(5, (9,)), state)
        >>> ensemble.predict(torch.randn(2, 3), state).shape
        torch.Size([2, 10])
    """

    def __init__(self, model: TabularModel, *, members: int = 8, seed: int = 0) -> None:
        if members < 1:
            raise ValueError(f"members={members}; expected at least 1")
        self.model, self.members, self.seed = model.eval() if model.training else model, members, seed

    @property
    def classes(self) -> int:
        """How many classes the head tells apart."""
        return self.model.classes

    def start(
        self,
        features: int,
        *,
        scale: Standardised | None = None,
        basis: Float[Tensor, "f width"] | None = None,
    ) -> EnsembleState:
        """Return the state of members that have seen no example.

        Args:
            features: numbers of an example.
            scale: mean and deviation of each feature; None for those of the examples so far.
            basis: directions that the members turn in place of the features, where there are more features than the
                network reads; see `principal_projection`.
        """
        device = self.model.weight.device
        projection = self._projection(features, basis).to(device)
        fixed = None
        if scale is not None:
            mean, deviation = (part.to(device, torch.float64).expand(self.members, -1) for part in scale)
            fixed = Standardised(mean, deviation)
        orders = torch.rand(self.members, self.classes, generator=self._generator(0)).argsort(dim=1)
        return EnsembleState(self.model.initial_state(projection, fixed), orders.to(device))

    def grow(self, state: EnsembleState, features: int) -> EnsembleState:
        """Make room for features that come later; they have been missing so far."""
        members = state.members
        more = features - members.last.shape[1]

        def pad(part: Tensor, value: float = 0.0) -> Tensor:
            return torch.nn.functional.pad(part, (0, more), value=value)

        grown = members._replace(
            moments=type(members.moments)(*(pad(part) for part in members.moments)),
            scale=Standardised(pad(members.scale.mean), pad(members.scale.deviation)),
            projection=self._projection(features, None).to(members.projection.device),
            last=pad(members.last, math.nan),
        )
        return state._replace(members=grown)

    @torch.no_grad()
    def learn(
        self,
        x: Float[Tensor, "n f"],
        labels: Int[Tensor, "n"],
        state: EnsembleState,
        *,
        shuffle: bool = False,
    ) -> EnsembleState:
        """Learn from labelled examples.

        Args:
            x: features; NaN where one is missing.
            labels: 0 to classes - 1.
            state: what is known so far.
            shuffle: whether each member reads them in an order of its own.
        """
        if not len(x):
            return state
        x, labels = self._same(x, state), labels.to(state.slots.device)
        members = state.members
        orders = torch.arange(len(x)).expand(self.members, -1)
        if shuffle:
            orders = torch.rand(self.members, len(x), generator=self._generator(1)).argsort(dim=1)
        for order in orders.to(x.device).split(self._together(x), dim=1):
            _, members = self.model(x[order], state.slots.gather(1, labels[order]), members)
        return state._replace(members=members)

    @torch.no_grad()
    def predict(self, x: Float[Tensor, "n f"], state: EnsembleState) -> Float[Tensor, "n classes"]:
        """Give the probabilities of classes, the mean over members; zero for classes that have not been seen."""
        x = self._same(x, state)
        found = []
        for part in x.split(self._together(x)):
            scores = self.model.read(part.expand(self.members, -1, -1), state.members).double()
            slots = state.slots[:, None].expand(-1, len(part), -1)
            found.append(scores.softmax(dim=-1).gather(2, slots).mean(dim=0))
        return torch.cat(found) if found else x.new_zeros(0, self.classes)

    def _projection(self, features: int, basis: Tensor | None) -> Tensor:
        """The members' own projections; those of more features begin with those of fewer."""
        width = self.model.config.model.width
        rows = features if basis is None else basis.shape[1]
        groups = [
            random_projection(self.members, width, width, self._generator(2 + group))
            for group in range(max(1, -(-rows // width)))
        ]
        made = torch.cat(groups, dim=1)[:, :rows].double()
        return made * math.sqrt(width / max(features, 1)) if basis is None else basis.double() @ made

    def _together(self, x: Tensor) -> int:
        return max(1, _AT_ONCE // (self.members * self.classes * max(x.shape[1], 1)))

    def _same(self, x: Tensor, state: EnsembleState) -> Tensor:
        return x.to(state.members.projection.device, torch.float64)

    def _generator(self, number: int) -> torch.Generator:
        return torch.Generator().manual_seed(int(stream_key(self.seed, number, torch.tensor(0))))


def principal_projection(x: Float[Tensor, "n f"], width: int) -> Float[Tensor, "f width"]:
    """Find the directions in which examples, once standardised, differ most; what they give varies by 1 or so.

    Where there are fewer examples than `width`, the other columns are zero. A number that is missing (NaN) lies at the
    mean.
    """
    mean, deviation = scale_of(x)
    z = ((x - mean) * inverse(deviation)).nan_to_num(0.0, 0.0, 0.0)
    _, found, directions = torch.linalg.svd(z, full_matrices=False)
    kept = directions[:width]
    # A direction has no sign of its own; its largest entry is made positive.
    signs = kept.gather(1, kept.abs().argmax(dim=1, keepdim=True)).sign()
    variance = found[:width].square().sum() / max(len(z), 1)
    basis = z.new_zeros(z.shape[1], width)
    if variance > 0:
        basis[:, : len(kept)] = (kept * signs).T * torch.sqrt(width / variance)
    return basis
