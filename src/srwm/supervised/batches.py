"""The batches of the next steps, drawn at once: a few larger operations instead of many small ones."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from srwm.errors import InputError
from srwm.runs.processes import Processes

from .config import TrainConfig

__all__ = ["AHEAD", "BatchesAhead"]

AHEAD = 64
"""Steps whose batches are drawn at once."""


class BatchesAhead:
    """This process's rows of the batches of 64 steps, and the number of the step at hand, on the device.

    A trainer draws them when `has` says no, hands them over to `put`, and calls `go_to` before each step.

    Attributes:
        step: the number of the step at hand.
        fields: this process's rows of what was drawn [steps, rows, ...].

    Raises:
        InputError: if the batch cannot be cut into equal shares.
    """

    def __init__(self, config: TrainConfig, device: torch.device, processes: Processes) -> None:
        self.step = torch.zeros((), device=device, dtype=torch.int64)
        self._parts, self._processes = config.grad_accum_steps, processes
        self.fields: list[Tensor] = []
        self._first = -1  # the first of the steps
        self._next: int | None = None  # the number that `step` holds, if known
        if config.batch_size % (processes.count * self._parts):
            raise InputError(
                f"batch_size={config.batch_size} cannot be shared by {processes.count} processes in {self._parts} "
                "parts each; choose a multiple"
            )

    def has(self, step: int) -> bool:
        """Whether the batch of a step is there."""
        return self._first == step - step % AHEAD

    def around(self, step: int) -> range:
        """The steps whose batches are drawn together with that of a step."""
        return range(step - step % AHEAD, step - step % AHEAD + AHEAD)

    def put(self, steps: range, drawn: Sequence[Tensor]) -> None:
        """Keep this process's rows of what was drawn for the steps [steps, batch, ...], in the memory of those before.

        A CUDA graph holds on to that memory.
        """
        # The processes share each part, so that its batch statistics are those of the same part in one process.
        shares = (self._parts, self._processes.count, -1)
        own = [field.unflatten(1, shares)[:, :, self._processes.rank].flatten(1, 2) for field in drawn]
        if self.fields:
            torch._foreach_copy_(self.fields, own)
        else:
            self.fields = [field.clone() for field in own]
        self._first = steps.start

    def go_to(self, step: int) -> None:
        """Set the number of the step at hand, if it is not that after the last one."""
        if step != self._next:
            self.step.fill_(step)
        self._next = step + 1

    def forget_step(self) -> None:
        """Let the next `go_to` set the number, whatever it is."""
        self._next = None

    def parts(self) -> Iterator[tuple[list[Tensor], int]]:
        """Give the parts of the batch of the step at hand, and where in the whole batch the rows of each begin."""
        at = (self.step % AHEAD).reshape(1)
        batch = [field.index_select(0, at)[0] for field in self.fields]
        count, rank = self._processes.count, self._processes.rank
        for part, rows in enumerate(zip(*(field.chunk(self._parts) for field in batch), strict=True)):
            yield list(rows), (part * count + rank) * len(rows[0])
