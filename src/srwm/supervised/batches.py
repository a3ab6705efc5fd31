"""The batches of the next steps, drawn at once, and from the batch of a step to new weights."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from srwm.errors import InputError
from srwm.runs.adam import ScheduledAdam
from srwm.runs.processes import Processes

from .config import TrainConfig

__all__ = ["AHEAD", "BatchesAhead", "update_weights"]

AHEAD = 64
"""Steps whose batches are drawn at once: a few larger operations instead of many small ones."""


class BatchesAhead:
    """This process's rows of the batches of 64 steps, and the number of the step at hand, on the device.

    Args:
        config: how the batch is cut.
        draw: gives what is drawn for some steps [s], on the device, as fields [s, batch, ...].
        device: where the steps are done.
        processes: this process among those of a `torchrun`.

    Attributes:
        step: the number of the step at hand.
        number_of_parts: into how many parts the batch of a step is cut.
        fields: this process's rows of what was drawn [steps, rows, ...].

    Raises:
        InputError: if the batch cannot be cut into equal shares.
    """

    def __init__(
        self,
        config: TrainConfig,
        draw: Callable[[Tensor], Sequence[Tensor]],
        device: torch.device,
        processes: Processes,
    ) -> None:
        self._draw = draw
        self.step = torch.zeros((), device=device, dtype=torch.int64)
        self.number_of_parts, self._processes = config.grad_accum_steps, processes
        self.fields: list[Tensor] = []
        self._first = -1  # the first of the steps
        self._next: int | None = None  # the number that `step` holds, if known
        if config.batch_size % (processes.count * self.number_of_parts):
            raise InputError(
                f"batch_size={config.batch_size} cannot be shared by {processes.count} processes in "
                f"{self.number_of_parts} parts each; choose a multiple"
            )

    def draw_ahead(self, step: int) -> None:
        """Draw the batches of 64 steps at once, of which this is one, unless they are there.

        This process's rows are kept, in the memory of those before: a CUDA graph holds on to it.
        """
        first = step - step % AHEAD
        if first == self._first:
            return
        drawn = self._draw(torch.arange(first, first + AHEAD, device=self.step.device))
        # The processes share each part, so that its batch statistics are those of the same part in one process.
        shares = (self.number_of_parts, self._processes.count, -1)
        own = [field.unflatten(1, shares)[:, :, self._processes.rank].flatten(1, 2) for field in drawn]
        if self.fields:
            torch._foreach_copy_(self.fields, own)
        else:
            self.fields = [field.clone() for field in own]
        self._first = first

    def go_to(self, step: int) -> None:
        """See that the batch of a step is there, and set its number, if it is not that after the last one."""
        self.draw_ahead(step)
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
        for part, rows in enumerate(zip(*(field.chunk(self.number_of_parts) for field in batch), strict=True)):
            yield list(rows), (part * count + rank) * len(rows[0])


def update_weights(
    batches: BatchesAhead,
    optimizer: ScheduledAdam,
    loss: Callable[[list[Tensor], int], tuple[Tensor, Tensor]],
) -> None:
    """From the batch of the step at hand to new weights, without looking at a value: what a CUDA graph captures.

    Args:
        batches: its parts go backward one after the other.
        optimizer: does the step; its first two sums are those of the losses and the steps.
        loss: the mean loss of a part's rows, of which the first has some place in the whole batch; and what is added to
            the other sums.
    """
    total = torch.zeros((), device=batches.step.device)
    optimizer.zero_grad()
    for rows, first in batches.parts():
        part, measured = loss(rows, first)
        (part / batches.number_of_parts).backward()
        total = total + part.detach() / batches.number_of_parts
        optimizer.sums[2:].add_(measured)
    optimizer.step(total, batches.step)
    optimizer.sums[0].add_(total)
    optimizer.sums[1].add_(1)
    batches.step.add_(1)
