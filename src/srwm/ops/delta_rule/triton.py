"""The delta rule on a GPU: each head's matrix stays in registers over the whole sequence.

One program runs a block of the columns of one head of one sequence; `../_tiles.py` says how it holds them. Columns do
not depend on each other, so wide heads are spread over several programs; going back, their shares of the gradients of
q, k and beta are written side by side and added up afterwards, always in the same order.
"""

import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .. import _checkpoints
from .._launch import Launch, Launcher
from ..kernels import segments
from ._arguments import GROWTH, MOST_DECAY, DeltaGradients, DeltaInputs, DeltaSaved
from ._backward_kernel import delta_rule_bwd_kernel
from ._forward_kernel import delta_rule_fwd_kernel

# By the number of rows, which is the head size rounded up to a power of two.
FWD = {
    8: Launch(4, 1, 64), 16: Launch(4, 1, 16), 32: Launch(2, 1, 32), 64: Launch(4, 1, 16), 128: Launch(8, 1, 16)
}  # fmt: skip
BWD = {
    8: Launch(4, 1, 64), 16: Launch(4, 1, 16), 32: Launch(4, 1, 32), 64: Launch(8, 1, 32), 128: Launch(16, 1, 16)
}  # fmt: skip

# Where the matrix decays, more is at hand at a step. These issue the fewest instructions in all without running out of
# registers.
DECAY_BWD = {
    8: Launch(4, 1, 64), 16: Launch(4, 1, 16), 32: Launch(4, 1, 32), 64: Launch(8, 1, 16), 128: Launch(16, 4, 16)
}  # fmt: skip


@functools.cache
def _blocks(d: int, e: int, dtype: torch.dtype, backward: bool, decays: bool) -> tuple[int, Launcher]:
    """The number of blocks, and the kernel."""
    rows_ = max(8, triton.next_power_of_2(d))
    launch = ((DECAY_BWD if decays else BWD) if backward else FWD)[rows_]
    # No narrower than the threads that lie along the columns.
    block = max(min(launch.block, triton.next_power_of_2(e)), launch.warps * 32 // launch.lanes)
    accumulator = tl.float64 if dtype == torch.float64 else tl.float32
    constants: dict[str, Any] = {
        "D": d, "E": e, "ROWS": rows_, "BLOCK": block, "LANES": launch.lanes, "ACC": accumulator,
        "DECAYS": decays, "GROWTH": GROWTH, "MOST_DECAY": MOST_DECAY, "num_warps": launch.warps,
    }  # fmt: skip
    if backward and rows_ <= 16 and not decays:
        # What jumps need of registers would keep other programs from running at the same time.
        constants["maxnreg"] = 128
    kernel = delta_rule_bwd_kernel if backward else delta_rule_fwd_kernel
    return triton.cdiv(e, block), Launcher(kernel, constants)


def forward(inputs: DeltaInputs, y: Tensor, end: Tensor, saved: DeltaSaved | None) -> None:
    """Fill y, end and what is saved."""
    q, k, v, beta, state, decay, reset = inputs
    b, t, h, d = q.shape
    error, checkpoints, jumps = saved or (end,) * 3
    blocks, run = _blocks(d, v.shape[3], end.dtype, False, decay is not None)
    if saved is not None and blocks > 1:
        jumps.fill_(-1)
    args = (
        q, k, v, beta, end if state is None else state, 0 if state is None else v.shape[3],
        beta if decay is None else decay, q if reset is None else reset.view(torch.uint8), y, end, error,
        checkpoints, jumps, t, h, 1,
        t if saved is None else _checkpoints.steps_between(d, v.shape[3], decay is not None),
    )  # fmt: skip
    with torch.cuda.device_of(q):
        run((b * h, blocks), args, SAVE=saved is not None, HAS_RESET=reset is not None, SHARED=blocks > 1)


def backward(
    dy: Tensor, dend: Tensor, inputs: DeltaInputs, end: Tensor, saved: DeltaSaved, gradients: DeltaGradients
) -> None:
    """Fill the gradients."""
    q, k, _, beta, state, decay, reset = inputs
    dq, dk, dv, dbeta, dstate, ddecay = gradients
    b, t, h, d = q.shape
    blocks, run = _blocks(d, dy.shape[3], end.dtype, True, decay is not None)
    # Shares of several blocks are kept as precise as the state until they are added up.
    summed = [dq, dk, dbeta] if decay is None else [dq, dk, dbeta, ddecay]
    shares = summed if blocks == 1 else [end.new_empty(blocks, *each.shape) for each in summed]
    decay_and_share = (beta, dbeta) if decay is None else (decay, shares[3])
    args = (
        dy, dend, q, k, beta, end if state is None else state, decay_and_share[0],
        end if reset is None else segments(reset), end, *saved, shares[0], shares[1], dv, shares[2], dstate,
        decay_and_share[1], t, h, 1, _checkpoints.steps_between(d, dy.shape[3], decay is not None),
    )  # fmt: skip
    with torch.cuda.device_of(q):
        run((b * h, blocks), args, HAS_STATE=state is not None, HAS_RESET=reset is not None)
    if blocks > 1:
        for gradient, share in zip(summed, shares, strict=True):
            gradient.copy_(share.sum(0))
