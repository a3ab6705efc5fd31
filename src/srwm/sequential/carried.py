"""Streams that go on from one training stream to the next, so that a network learns to live longer than one of them."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from srwm.nn import SequenceState
from srwm.runs.processes import Processes
from srwm.supervised.carried_states import CarriedStates
from srwm.supervised.config import MOST_SOURCES

from .config import SequentialConfig
from .model import StreamModel
from .streams import NO_LABEL

_RNG_STREAM = 3 * (MOST_SOURCES + 1)
"""The stream of random numbers that says which rows are reset; those before it belong to the drawing of streams."""


@dataclass(frozen=True)
class Beginning:
    """What some rows of a batch begin their streams with."""

    state: SequenceState
    """New, or that after the row's last stream."""
    previous: Int[Tensor, "b"]
    """The label of the last image of that stream; -1 in rows that are reset."""


class Carried(CarriedStates):
    """The ends of the last training streams of every row of this process's share of the batch."""

    def __init__(self, model: StreamModel, config: SequentialConfig, processes: Processes) -> None:
        train = config.train
        rows = train.batch_size // processes.count
        super().__init__(
            model.initial_state(rows),
            train,
            share=train.carry_state_prob,
            seed=config.seed,
            rng_stream=_RNG_STREAM,
            processes=processes,
        )
        self._labels = torch.full((rows,), NO_LABEL, device=model.mean.device)

    def begin(self, first: int, size: int, step: Int[Tensor, ""]) -> Beginning:
        """Give what rows begin with at a step of the training; see `begin_state`."""
        state, is_new = self.begin_state(first, size, step)
        return Beginning(state, self._labels[self.own(first, size)].masked_fill(is_new, NO_LABEL))

    @torch.no_grad()
    def end(self, first: int, state: SequenceState, labels: Int[Tensor, "b"]) -> None:
        """Keep the state after the last step of some rows' streams, and its labels."""
        self.end_state(first, len(labels), state)
        self._labels[self.own(first, len(labels))].copy_(labels)

    def named(self) -> dict[str, Tensor]:
        """Everything that is kept of a row, by name."""
        return {"labels": self._labels, **super().named()}
