"""The tensors that go into a step and come out of it, by name."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from srwm.nn import SequenceState, map_state, named_tensors

__all__ = ["Named", "Slot", "StateSlots"]

Named = dict[str, Tensor]
"""The tensors of a state by name."""


@dataclass(frozen=True)
class Slot:
    """A tensor that goes in or comes out; the first of its axes is the batch."""

    name: str
    """What it is called in the file."""
    dtype: torch.dtype
    """Type of its numbers."""
    shape: tuple[int, ...]
    """Its axes after the batch."""
    about: str
    """What it means, in a sentence."""

    def zeros(self, batch_size: int) -> Tensor:
        """Make one of zeros."""
        return torch.zeros(batch_size, *self.shape, dtype=self.dtype)

    def to_json(self) -> dict[str, Any]:
        """Describe it for those that read `io.json`; the word for the type is NumPy's."""
        return {
            "name": self.name,
            "dtype": str(self.dtype).removeprefix("torch."),
            "shape": ["batch", *self.shape],
            "about": self.about,
        }


class StateSlots:
    """The state of a model as named tensors: `state.0.change` is that of its first layer.

    What a step hands on untouched is zero for ever, and left out: the counter of an SRWM that does not count.

    Args:
        before: a state of the model.
        after: the state one step later.

    Attributes:
        slots: what is left, in the order of the layers.
    """

    def __init__(self, before: SequenceState, after: SequenceState) -> None:
        self._like = before
        pairs = zip(_named(before), _named(after), strict=True)
        self._changes = tuple(old.data_ptr() != new.data_ptr() for (_, old), (_, new) in pairs)
        self.slots = tuple(
            Slot(name, tensor.dtype, tuple(tensor.shape[1:]), "zeros at the start; then what the step before gave")
            for (name, tensor), changes in zip(_named(before), self._changes, strict=True)
            if changes
        )

    def named(self, state: SequenceState) -> Named:
        """Give the tensors of a state their names."""
        parts = zip(_named(state), self._changes, strict=True)
        return {name: tensor for (name, tensor), changes in parts if changes}

    def state(self, named: Named, batch_size: int) -> SequenceState:
        """Put named tensors back into a state; the inverse of `named`."""
        given, changes = iter([named[slot.name] for slot in self.slots]), iter(self._changes)
        return map_state(
            lambda like: next(given) if next(changes) else like.new_zeros(batch_size, *like.shape[1:]), self._like
        )


def _named(state: SequenceState) -> Iterator[tuple[str, Tensor]]:
    return named_tensors(state.layers, "state")
