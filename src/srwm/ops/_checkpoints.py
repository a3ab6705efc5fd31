"""Matrices stored at intervals on the way forward, from which the way back goes on.

The backward pass undoes updates, one after another, from the matrix at the end of an interval. That is exact only while
the matrix has not grown much: what is undone carries the rounding of the largest matrix after it. So the forward pass
compares what each step writes with the size of each column when its interval began, and notes the last step that went
far beyond it, a jump. The matrix before a jump is not undone but written again from the start of the interval.
"""

from typing import Any, TypeAlias

import torch
from torch import Tensor

Size: TypeAlias = Any
"""A size of a tensor: an int, or a symbol (torch.SymInt) where PyTorch traces for any sizes."""


def steps_between(head_dim: Size, columns: Size, decays: bool = False) -> Size:
    """How many steps lie between two stored matrices: so many that they are about a tenth of the vectors that are kept.

    Args:
        head_dim: the rows of a matrix.
        columns: the columns of a matrix.
        decays: whether the matrix decays, and so cannot be found again over as many steps: half as many then.
    """
    # The vectors of a step are 2 head_dim + columns numbers long, and in the delta rule as many again.
    steps = 4 * head_dim * columns // (head_dim + columns // 3) + 32
    return steps // 2 if decays else steps


def empty_checkpoints(
    like: Tensor, shape: tuple[Size, Size, Size, Size], steps: Size, save: bool, decays: bool = False
) -> tuple[Tensor, Tensor]:
    """Room for the stored matrices and for the jumps of a sequence; empty unless `save`.

    Returns:
        The matrix before the first step of every interval but the first [b, h, intervals - 1, d, m], and the last
        jump of every interval or -1, int32 [b, h, intervals].
    """
    b, h, d, m = shape
    interval = steps_between(d, m, decays)
    intervals = (steps + interval - 1) // interval if save else 0
    return (
        like.new_empty(b, h, max(intervals - 1, 0), d, m),
        like.new_empty(b, h, intervals, dtype=torch.int32),
    )
