"""What the kernels are given, what they keep for the backward pass, and what they fill."""

from typing import NamedTuple

from torch import Tensor

from .options import Options

GROWTH = 16.0
"""A difference this many times larger than its column was is a jump (see `../_checkpoints.py`).

A difference is at most twice as large as its column, and smaller where query and key are alike; in long sequences
gradients magnify what is wrong with the matrix about tenfold. With 16, they stay right to 1e-4 in float32.
"""

MOST_DECAY = 512.0
"""Where the change of the matrix has decayed by more than this factor, a step is a jump, and counting begins anew.

Undoing a decay divides by it, and with it what rounding left. Gates that let go of a tenth with each step come to this
in 60 steps.
"""


class SelfReferentialInputs(NamedTuple):
    """The arguments of the operator; see `srwm.ops.self_referential`."""

    x: Tensor
    weight: Tensor
    state: Tensor | None
    reset: Tensor | None
    options: Options


class SelfReferentialGradients(NamedTuple):
    """Room for the gradients of x and the incoming state, and for each sequence's share of that of the weight.

    None for the last, where the share is the gradient of the state.
    """

    x: Tensor
    state: Tensor
    weight: Tensor | None


class SelfReferentialSaved(NamedTuple):
    """What the forward pass keeps for the backward pass: vectors of every step, and matrices at intervals."""

    q: Tensor
    """[b, t, h, d]."""
    k: Tensor
    """[b, t, h, d]."""
    beta: Tensor
    """The learning rates, then what each gate lets go of: [b, t, h, learning_rates + forget_gates]."""
    scale: Tensor
    """What "l2" multiplied q and k with, [b, t, h, 2]; with "softmax", [b, t, h, 0]."""
    difference: Tensor
    """[b, t, h, m]."""
    checkpoints: Tensor
    """[b, h, intervals - 1, d, m], see `empty_checkpoints`."""
    last_jumps: Tensor
    """int32 [b, h, intervals]: a step of each interval, none before its last jump, or -1 where it has none."""
