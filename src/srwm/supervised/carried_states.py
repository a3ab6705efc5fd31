"""States that go on from one training sequence to the next, so that a network learns on a horizon longer than one."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from srwm.data.random import random_bits, stream_key
from srwm.errors import InputError
from srwm.nn import SequenceState, map_state, named_tensors
from srwm.runs.processes import Processes, gather_tensors

from .config import TrainConfig

__all__ = ["CarriedStates"]


class CarriedStates:
    """The states after the last training sequences of every row of this process's share of the batch.

    Args:
        state: that of as many new sequences as the process has rows, on the device.
        train: says into how many parts a process cuts its rows.
        share: of the rows that go on, drawn again for each step.
        seed: seed of the run.
        rng_stream: number of a stream of random numbers that nothing else uses.
        processes: this process among those of a `torchrun`.
    """

    def __init__(
        self,
        state: SequenceState,
        train: TrainConfig,
        *,
        share: float,
        seed: int,
        rng_stream: int,
        processes: Processes,
    ) -> None:
        self._state, self._train, self._processes = state, train, processes
        self._share, self._seed, self._stream = share, seed, rng_stream

    def begin_state(self, first: int, size: int, step: Int[Tensor, ""]) -> tuple[SequenceState, Bool[Tensor, "b"]]:
        """Give the states that rows begin with at a step of the training; no value is looked at.

        Args:
            first: place of the first of them in the whole batch.
            size: how many.
            step: number of the step, on the device.

        Returns:
            The states, new or those after the row's last sequence; and which rows are reset.
        """
        own = self.own(first, size)
        is_new = self._is_new(step)[first : first + size]
        return map_state(lambda tensor: tensor[own], self._state).reset(is_new), is_new

    @torch.no_grad()
    def end_state(self, first: int, size: int, state: SequenceState) -> None:
        """Keep the state after the sequences of some rows."""
        own = self.own(first, size)
        for (_, kept), (_, new) in zip(named_tensors(self._state), named_tensors(state), strict=True):
            kept[own].copy_(new)

    def tensors(self) -> dict[str, Tensor]:
        """Give the ends of all processes' rows, in the order of the whole batch; every process must ask."""
        gathered = gather_tensors(self.named(), self._processes)
        parts = self._train.grad_accum_steps
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
        parts, count, rank = self._train.grad_accum_steps, self._processes.count, self._processes.rank
        for name, own in self.named().items():
            if name not in tensors or tensors[name].shape != (count * len(own), *own.shape[1:]):
                raise InputError(f"the checkpoint is of another model or size of batch: carried {name} does not fit")
            own.copy_(tensors[name].unflatten(0, (parts, count, -1))[:, rank].flatten(0, 1))

    def named(self) -> dict[str, Tensor]:
        """Everything that is kept of a row, by name."""
        return {f"state.{name}": tensor for name, tensor in named_tensors(self._state)}

    def own(self, first: int, size: int) -> slice:
        """Where rows lie here that stand at some place in the whole batch; parts of it are shared by the processes."""
        part = first // (size * self._processes.count)
        return slice(part * size, (part + 1) * size)

    def _is_new(self, step: Tensor) -> Bool[Tensor, "batch"]:
        key = stream_key(self._seed, self._stream, step)
        return random_bits(key, (self._train.batch_size,)) >= round(self._share * 2**32)
