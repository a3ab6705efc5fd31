"""Whether a file computes what the model computes: both take the same random steps, each with its own state."""

from typing import NamedTuple

import torch

from srwm.errors import RunError

from .formats import Run
from .steps import Step

__all__ = ["TOLERANCE", "Difference", "largest_difference"]

TOLERANCE = 1e-4
"""Largest difference that rounding explains: sums in another order, a few hundred numbers long, over several steps."""

_BATCHES, _STEPS = (1, 3), 4


class Difference(NamedTuple):
    """How far a file and the model are apart."""

    largest: float
    """The largest difference of two numbers, of an answer or of the state; beyond 1, relative to their size."""
    steps: int
    """How many steps were compared."""


def largest_difference(step: Step, run: Run) -> Difference:
    """Compare a file with the model, on random inputs.

    Args:
        step: the model, on its own kernels.
        run: the file.

    Raises:
        RunError: if they differ by more than rounding.
    """
    generator = torch.Generator().manual_seed(0)
    largest, count = 0.0, 0
    for batch_size in _BATCHES:
        ours = theirs = step.initial_state(batch_size)
        for _ in range(_STEPS):
            inputs = step.examples(batch_size, generator)
            with torch.no_grad():
                *answers, ours = step(*inputs, ours)
            outputs, theirs = run(inputs, theirs)
            pairs = [*zip(answers, outputs, strict=True), *((ours[name], theirs[name]) for name in ours)]
            names = [*(slot.name for slot in step.outputs), *ours]
            for name, (wanted, got) in zip(names, pairs, strict=True):
                distance = _distance(wanted, got)
                # Written so that it is refused if it is no number at all.
                if not distance <= TOLERANCE:
                    raise RunError(
                        f"the exported model does not compute what the model computes: {name} differs by "
                        f"{distance:.2g}, more than {TOLERANCE:g}; nothing was written"
                    )
                largest = max(largest, distance)
            count += 1
    return Difference(largest, count)


def _distance(wanted: torch.Tensor, got: torch.Tensor) -> float:
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        return float("inf")
    wanted, got = wanted.double(), got.double()
    return float((wanted - got).abs().max() / wanted.abs().max().clamp(min=1))
