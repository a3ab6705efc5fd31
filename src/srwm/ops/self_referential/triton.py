"""The self-referential recurrence on a GPU: each head's matrix stays in registers over the whole sequence.

The parts q, k, beta of the matrix do not depend on its part y. Where all of it fits the registers, one program runs
both; where it does not, the core q, k, beta runs first and the columns of y follow, block by block, in programs of
their own. Going back, y comes first and hands the core its share of the gradients.
"""

import functools
import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from .. import _checkpoints
from .._launch import Launch, Launcher
from ..kernels import segments
from ._arguments import GROWTH, MOST_DECAY, SelfReferentialGradients, SelfReferentialInputs, SelfReferentialSaved
from ._backward_kernel import self_referential_bwd_kernel
from ._forward_kernel import self_referential_fwd_kernel
from .options import L2_EPS, Options

# By the number of rows, which is the head size rounded up to a power of two.
CORE_FWD = {8: Launch(4, 1), 16: Launch(2, 1), 32: Launch(2, 1), 64: Launch(4, 2), 128: Launch(4, 8)}
CORE_BWD = {8: Launch(4, 1), 16: Launch(4, 1), 32: Launch(8, 2), 64: Launch(32, 4), 128: Launch(32, 16)}
# More programs than a multiprocessor holds at a time share its registers, see `_is_crowded`.
CROWDED_CORE_BWD = {16: Launch(8, 1)}
READ_FWD = {
    8: Launch(4, 1, 64), 16: Launch(2, 1, 64), 32: Launch(4, 1, 32), 64: Launch(2, 1, 16), 128: Launch(4, 1, 16)
}  # fmt: skip
READ_BWD = {
    8: Launch(4, 1, 64), 16: Launch(4, 1, 64), 32: Launch(8, 1, 32), 64: Launch(16, 1, 16), 128: Launch(16, 1, 16)
}  # fmt: skip

# With gates, the matrix and what it was at first are held apart, and so are two gradients.
GATED_CORE_FWD = {8: Launch(4, 1), 16: Launch(2, 1), 32: Launch(4, 2), 64: Launch(8, 4), 128: Launch(16, 16)}
GATED_CORE_BWD = {8: Launch(4, 1), 16: Launch(4, 1), 32: Launch(8, 2), 64: Launch(16, 4), 128: Launch(32, 16)}
GATED_READ_BWD = {
    8: Launch(4, 1, 64), 16: Launch(4, 1, 64), 32: Launch(8, 1, 32), 64: Launch(16, 1, 16), 128: Launch(16, 1, 8)
}  # fmt: skip

REGISTERS = 65536
"""Of a multiprocessor."""


def _fits_one_program(rows: int, columns: int, tiles: int) -> bool:
    """Whether the part y of a matrix can share a program with the core; with more, registers run out.

    Args:
        rows: of the tiles.
        columns: of the part y.
        tiles: how many there are of each part.
    """
    return rows <= 32 and tiles * rows * columns <= 2048


class _LaunchPart(NamedTuple):
    """One launch: in how many programs a head, which part of the matrix it runs, and the kernel."""

    blocks: int
    runs_core: bool
    runs_read: bool
    run: Launcher


@functools.cache
def _parts(d: int, out: int, options: Options, dtype: torch.dtype, crowded: bool, backward: bool) -> list[_LaunchPart]:
    """The launches that make up one pass, in their order."""
    rows = max(8, triton.next_power_of_2(d))
    wide = triton.next_power_of_2(out)
    if options.forget_gates:
        core, read = (GATED_CORE_BWD, GATED_READ_BWD) if backward else (GATED_CORE_FWD, READ_FWD)
    else:
        core, read = (CORE_BWD, READ_BWD) if backward else (CORE_FWD, READ_FWD)
        if crowded and backward:
            core = {**core, **CROWDED_CORE_BWD}
    tiles = (4 if options.forget_gates else 2) if backward else 2
    if _fits_one_program(rows, wide, tiles):
        launches = [(True, True, core[rows])]
    else:
        launches = [(True, False, core[rows]), (False, True, read[rows])]
    parts = []
    for runs_core, runs_read, launch in launches:
        nb = min(launch.warps * 32 // launch.lanes, rows)
        block = launch.block or max(wide, nb)
        constants: dict[str, Any] = {
            "D": d, "OUT": out, "ROWS": rows, "BLOCK": block, "WIDE_B": max(nb, 8 if options.forget_gates else 4),
            "NB": nb, "LANES": launch.lanes,
            "ACC": tl.float64 if dtype == torch.float64 else tl.float32,
            "CORE": runs_core, "READ": runs_read, "num_warps": launch.warps, **_variant(options),
        }  # fmt: skip
        if not backward:
            constants["WARPS"] = launch.warps
        if crowded and runs_core and rows <= 16 and tiles == 2:
            constants["maxnreg"] = 128
        elif launch.warps >= 16:
            # Left alone, ptxas takes a half or a quarter of the registers there are for so many threads.
            constants["maxnreg"] = REGISTERS // (launch.warps * 32)
        kernel = self_referential_bwd_kernel if backward else self_referential_fwd_kernel
        blocks = 1 if runs_core else triton.cdiv(out, block)
        parts.append(_LaunchPart(blocks, runs_core, runs_read, Launcher(kernel, constants)))
    return parts[::-1] if backward else parts


def _variant(options: Options) -> dict[str, Any]:
    """What the compiler is told of the options: those that are not used do not make another kernel."""
    gated = options.forget_gates > 0
    return {
        "RATES": options.learning_rates,
        "GATES": options.forget_gates,
        "L2_EPS": L2_EPS if options.key_map == "l2" else None,
        "FORGET_MIN": options.forget_min if gated else 0.0,
        "FORGET_RANGE": options.forget_max - options.forget_min if gated else 0.0,
        "FORGET_BIAS": options.forget_bias if gated else 0.0,
        "CLIP": options.difference_clip if options.difference_clip < math.inf else None,
        "GROWTH": GROWTH,
        "MOST_DECAY": MOST_DECAY,
    }


@functools.cache
def _multiprocessors(device: torch.device) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _is_crowded(x: Tensor) -> bool:
    """Whether more programs wait for a multiprocessor than it can hold when each takes all the registers it likes.

    With fewer registers each, some values go to memory and back, but all programs run at the same time.
    """
    return x.is_cuda and x.shape[0] * x.shape[2] > 10 * _multiprocessors(x.device)


def forward(inputs: SelfReferentialInputs, y: Tensor, end: Tensor, saved: SelfReferentialSaved | None) -> None:
    """Fill y, end and what is saved."""
    x, weight, state, reset, options = inputs
    b, t, h, d = x.shape
    parts = _parts(d, y.shape[3], options, weight.dtype, _is_crowded(x), False)
    keep = saved is not None or len(parts) > 1
    interval = t if saved is None else _checkpoints.steps_between(d, weight.shape[2], options.forget_gates > 0)
    if saved is not None:
        q, k, beta, scale, difference, checkpoints, jumps = saved
        if len(parts) > 1:
            jumps.fill_(-1)
    else:
        # The core hands q, k and beta to the columns of y; nobody reads what else would be saved.
        sizes = (d, d, options.learning_rates + options.forget_gates)
        q, k, beta = (weight.new_empty(b, t, h, n if keep else 0) for n in sizes)
        scale = difference = checkpoints = jumps = end
    args = (
        x, weight, end if state is None else state, x if reset is None else reset.view(torch.uint8), y, end, q, k, beta,
        scale, difference, checkpoints, jumps, t, h, 1, interval,
    )  # fmt: skip
    flags = {
        "KEEP": keep, "SAVE": saved is not None, "HAS_STATE": state is not None, "HAS_RESET": reset is not None,
        "SHARED": len(parts) > 1,
    }  # fmt: skip
    with torch.cuda.device_of(x):
        for part in parts:
            part.run((b * h, part.blocks), args, **flags)


def backward(
    dy: Tensor,
    dend: Tensor | None,
    inputs: SelfReferentialInputs,
    end: Tensor,
    saved: SelfReferentialSaved,
    gradients: SelfReferentialGradients,
) -> None:
    """Fill the gradients."""
    x, weight, state, reset, options = inputs
    dx, dstate, dweight = gradients
    b, t, h, d = x.shape
    gated = options.forget_gates > 0
    interval = _checkpoints.steps_between(d, weight.shape[2], gated)
    segment = end if reset is None else segments(reset)
    share = end
    for part in _parts(d, dy.shape[3], options, weight.dtype, _is_crowded(x), True):
        if not part.runs_core:
            share = weight.new_empty(part.blocks, b, t, h, 3 * d + 1 + gated)
        elif not part.runs_read:
            share = share.sum(0) if share.shape[0] > 1 else share
        args = (
            dy, end if dend is None else dend, x, weight, end if state is None else state, segment, end, *saved, share,
            dx, dstate, end if dweight is None else dweight, t, h, 1, interval, 0,
        )  # fmt: skip
        flags = {"HAS_STATE": state is not None, "HAS_RESET": reset is not None, "HAS_END": dend is not None}
        with torch.cuda.device_of(x):
            part.run((b * h, part.blocks), args, **flags)
