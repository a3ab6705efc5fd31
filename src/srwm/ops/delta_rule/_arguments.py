"""What kernels of the delta rule are given, what they keep for the backward pass, and what they fill."""

from typing import NamedTuple

from torch import Tensor

GROWTH = 512.0
"""An update this many times larger than what its column held is a jump (see `../_checkpoints.py`).

Undoing a smaller one leaves at most as many units in the last place of the column, 3e-5 in float32.
"""

MOST_DECAY = 2.0**16
"""Where the matrix has decayed by more than this factor since its interval began, a step is a jump.

Undoing a decay divides by it, and with it what rounding left in the matrix: that of later, larger writes counts as the
larger the more it was decayed since, see the README.
"""


class DeltaInputs(NamedTuple):
    """The arguments of the operator; see `srwm.ops.delta_rule`."""

    q: Tensor
    k: Tensor
    v: Tensor
    beta: Tensor
    state: Tensor | None
    decay: Tensor | None
    reset: Tensor | None


class DeltaGradients(NamedTuple):
    """Room for the gradients of the arguments; that of the decay is empty if there is none."""

    q: Tensor
    k: Tensor
    v: Tensor
    beta: Tensor
    state: Tensor
    decay: Tensor


class DeltaSaved(NamedTuple):
    """What the forward pass keeps for the backward pass: vectors of every step, and matrices at intervals."""

    error: Tensor
    """v - k S [b, t, h, e]."""
    checkpoints: Tensor
    """[b, h, intervals - 1, d, e], see `empty_checkpoints`."""
    last_jumps: Tensor
    """int32 [b, h, intervals]."""
