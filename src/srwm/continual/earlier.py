"""What is still known of the sequence before, where training sequences go on in the state of the last one."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from srwm.nn import SequenceState

from .model import ContinualModel


class EarlierSequences:
    """Asks at every boundary about all tasks of the sequences that some rows had before; `goes_on` says which."""

    def __init__(
        self,
        model: ContinualModel,
        query: Float[Tensor, "b m f"],
        labels: Int[Tensor, "b m"],
        goes_on: Bool[Tensor, "b"],
    ) -> None:
        self._model, self._query, self._labels = model, query, labels
        self._goes_on = goes_on.float()
        self._right = self._goes_on
        self._losses: list[Tensor] = []

    def ask(self, state: SequenceState) -> None:
        """Ask at the end of a task."""
        scores, labels = self._model.read_features(self._query, state), self._labels
        each = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none").reshape(labels.shape)
        self._losses.append(each.mean(dim=-1))
        self._right = (scores.detach().argmax(dim=-1) == labels).float().mean(dim=-1)

    def loss(self) -> Float[Tensor, ""]:
        """Mean cross-entropy over the boundaries, and over the rows that go on; zero if none does."""
        each = torch.stack(self._losses).mean(dim=0)
        return (each * self._goes_on).sum() / self._goes_on.sum().clamp(min=1)

    def counts(self) -> list[Tensor]:
        """The share of right answers at the last boundary, and of rows that go on; both over all rows."""
        return [(self._right * self._goes_on).mean(), self._goes_on.mean()]
