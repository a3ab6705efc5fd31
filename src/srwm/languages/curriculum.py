"""A training that begins with short sequences, and goes on to longer ones as it gets them right."""

from collections.abc import Mapping

import torch
from torch import Tensor

from srwm.runs.processes import Processes
from srwm.runs.tensor_file import restore_group

from .config import CurriculumConfig

_GROUP = "curriculum"


class Curriculum:
    """Which lengths are drawn now. What it decides is a function of what it has counted, which checkpoints hold.

    Args:
        config: how it goes on; None for all lengths from the first step.
        lengths: all lengths that there are.
        processes: this process among its peers, who count together.
        device: where sequences are counted.
    """

    def __init__(
        self, config: CurriculumConfig | None, lengths: range, processes: Processes, device: torch.device
    ) -> None:
        self._config, self._all, self._processes = config, lengths, processes
        # How many of the lengths are drawn; and right sequences and all since the last decision.
        self._number = torch.tensor(len(lengths))
        self._counts = torch.zeros(2, device=device, dtype=torch.float64)
        if config is not None:
            self._number.fill_(sum(length <= config.first_longest for length in lengths)).clamp_(min=1)

    @property
    def lengths(self) -> range:
        """The lengths to be drawn now."""
        return self._all[: int(self._number)]

    def count(self, whole: Tensor, sequences: Tensor) -> None:
        """Add the right sequences of a step, and all; no value is looked at."""
        if self._config is not None:
            self._counts += torch.stack([whole.double(), sequences.double()])

    def go_on(self) -> None:
        """Decide whether longer sequences come next."""
        if self._config is None:
            return
        counts = self._counts.clone()
        if self._processes.count > 1:
            torch.distributed.all_reduce(counts)
        whole, sequences = counts.tolist()
        self._counts.zero_()
        if sequences and whole >= self._config.sequence_accuracy * sequences:
            more = max(int(self._config.growth * self.lengths[-1] / self._all.step), 1)
            self._number.add_(more).clamp_(max=len(self._all))

    def metrics(self) -> dict[str, float]:
        """The longest length that is drawn."""
        return {} if self._config is None else {"train/longest": float(self.lengths[-1])}

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """What a checkpoint must hold."""
        return {} if self._config is None else {_GROUP: {"number": self._number, "counts": self._counts}}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to a checkpoint."""
        if self._config is not None:
            restore_group({"number": self._number, "counts": self._counts}, groups, _GROUP)
