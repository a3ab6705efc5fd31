"""What the forward pass keeps for the backward pass."""

from typing import NamedTuple

from torch import Tensor

GROWTH = 512.0
"""An update this many times larger than what its column held is a jump (see `../_checkpoints.py`).

Undoing a smaller one leaves at most as many units in the last place of the column, 3e-5 in float32.
"""


class Saved(NamedTuple):
    """Vectors of every step, and matrices at intervals."""

    error: Tensor
    """v - k S [b, t, h, e]."""
    checkpoints: Tensor
    """[b, h, intervals - 1, d, e], see `empty_checkpoints`."""
    last_jumps: Tensor
    """int32 [b, h, intervals]."""
