"""States that go on from one training stream to the next, so that a network learns to live longer than one of them."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from srwm.data.random import random_bits, stream_key
from srwm.errors import InputError
from srwm.nn import SequenceState, map_state, named_tensors
from srwm.runs.processes import Processes, gather_tensors

from .config import MOST_SOURCES, SequentialConfig
from .model import StreamModel
from .streams import NO_LABEL

_STREAM = 3 * (MOST_SOURCES + 1)
"""The stream of random numbers that says which rows are reset; those before it belong to the drawing of streams."""


@dataclass(frozen=True)
class Beginning:
    """What some rows of a batch begin their streams with."""

    state: SequenceState
    """New, or that after the row's last stream."""
    previous: Int[Tensor, "b"]
    """The label of the last image of that stream; -1 in rows that are reset."""


class Carried:
    """The ends of the last training streams of every row of this process's share of the batch.

    Args:
        model: whose states they are; on the device.
        config: the recipe; `train.carry_state_prob` of the rows go on, drawn again for each step.
        processes: this process among those of a `torchrun`.
    """

    def __init__(self, model: StreamModel, config: SequentialConfig, processes: Processes) -> None:
        self._config, self._processes = config, processes
        rows = config.train.batch_size // processes.count
        self._state = model.initial_state(rows)
        self._labels = torch.full((rows,), NO_LABEL, device=model.mean.device)

    def begin(self, first: int, size: int, step: Int[Tensor, ""]) -> Beginning:
        """Give what rows begin with at a step of the training; no value is looked at.

        Args:
            first: place of the first of them in the whole batch.
            size: how many.
            step: number of the step, on the device.
        """
        own = self._own(first, size)
        is_new = self._is_new(step)[first : first + size]
        state = map_state(lambda tensor: tensor[own], self._state).reset(is_new)
        return Beginning(state, self._labels[own].masked_fill(is_new, NO_LABEL))

    @torch.no_grad()
    def end(self, first: int, state: SequenceState, labels: Int[Tensor, "b"]) -> None:
        """Keep the state after the last step of some rows' streams, and its labels."""
        own = self._own(first, len(labels))
        for (_, kept), (_, new) in zip(named_tensors(self._state), named_tensors(state), strict=True):
            kept[own].copy_(new)
        self._labels[own].copy_(labels)

    def tensors(self) -> dict[str, Tensor]:
        """Give the ends of all processes' rows, in the order of the whole batch; every process must ask."""
        gathered = gather_tensors(self._named(), self._processes)
        parts = self._config.train.grad_accum_steps
        # A process has its share of each part of the batch.
        return {
            name: torch.stack([each[name].unflatten(0, (parts, -1)) for each in gathered], dim=1).flatten(0, 2)
            for name in gathered[0]
        }

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to what `tensors` gave, in place: a recorded step holds on to the tensors' memory.

        Raises:
            InputError: if they are those of another batch or model.
        """
        parts, count, rank = self._config.train.grad_accum_steps, self._processes.count, self._processes.rank
        for name, own in self._named().items():
            if name not in tensors or tensors[name].shape != (count * len(own), *own.shape[1:]):
                raise InputError(f"the checkpoint is of another model or size of batch: carried {name} does not fit")
            own.copy_(tensors[name].unflatten(0, (parts, count, -1))[:, rank].flatten(0, 1))

    def _named(self) -> dict[str, Tensor]:
        return {"labels": self._labels, **{f"state.{name}": tensor for name, tensor in named_tensors(self._state)}}

    def _own(self, first: int, size: int) -> slice:
        """Where rows lie here that stand at some place in the whole batch; parts of it are shared by the processes."""
        part = first // (size * self._processes.count)
        return slice(part * size, (part + 1) * size)

    def _is_new(self, step: Tensor) -> Bool[Tensor, "batch"]:
        train = self._config.train
        key = stream_key(self._config.seed, _STREAM, step)
        return random_bits(key, (train.batch_size,)) >= round(train.carry_state_prob * 2**32)
