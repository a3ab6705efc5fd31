"""The four parts of a self-referential matrix as tiles: w_y, w_q, w_k and w_b; the last has the forget columns, too.

`place` says where a thread's share of them lies: (row, col_y, col, col_b, unit), see `load_tile`. A kernel that runs
the core has the last three parts, one that reads has the first; the others are there in name only. `LAST` is the number
of columns of the last part.
"""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import column_limits, load_tile, store_tile, zeros


@triton.jit
@no_type_check
def add_matrix(
    source, place, matrix,
    D: tl.constexpr, OUT: tl.constexpr, LAST: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
):  # fmt: skip
    """The four tiles, with a [D, M] matrix in memory added."""
    M: tl.constexpr = OUT + 2 * D + LAST
    row, col_y, col, col_b, unit = place
    w_y, w_q, w_k, w_b = matrix
    if READ:
        w_y += load_tile(source, 0, row, col_y, D, OUT, M, unit, w_y.dtype)
    if CORE:
        w_q += load_tile(source, OUT, row, col, D, D, M, unit, w_q.dtype)
        w_k += load_tile(source, OUT + D, row, col, D, D, M, unit, w_k.dtype)
        w_b += load_tile(source, OUT + 2 * D, row, col_b, D, LAST, M, unit, w_b.dtype)
    return w_y, w_q, w_k, w_b


@triton.jit
@no_type_check
def store_matrix(
    target, place, matrix,
    D: tl.constexpr, OUT: tl.constexpr, LAST: tl.constexpr, CORE: tl.constexpr, READ: tl.constexpr,
):  # fmt: skip
    """Store the four tiles as a [D, M] matrix."""
    M: tl.constexpr = OUT + 2 * D + LAST
    row, col_y, col, col_b, unit = place
    w_y, w_q, w_k, w_b = matrix
    if READ:
        store_tile(target, 0, row, col_y, D, OUT, M, unit, w_y)
    if CORE:
        store_tile(target, OUT, row, col, D, D, M, unit, w_q)
        store_tile(target, OUT + D, row, col, D, D, M, unit, w_k)
        store_tile(target, OUT + 2 * D, row, col_b, D, LAST, M, unit, w_b)


@triton.jit
@no_type_check
def zero_matrix(row, BLOCK: tl.constexpr, ROWS: tl.constexpr, WIDE_B: tl.constexpr, ACC: tl.constexpr):
    """The four tiles, of zeros; the last has WIDE_B columns."""
    return zeros(row, BLOCK, ACC), zeros(row, ROWS, ACC), zeros(row, ROWS, ACC), zeros(row, WIDE_B, ACC)


@triton.jit
@no_type_check
def sum_of(a, b):
    """The sum of two matrices."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


@triton.jit
@no_type_check
def limits_of(matrix, GROWTH: tl.constexpr):
    """How large the differences of each part may be, by the size of its columns."""
    w_y, w_q, w_k, w_b = matrix
    return (
        column_limits(w_y, GROWTH),
        column_limits(w_q, GROWTH),
        column_limits(w_k, GROWTH),
        column_limits(w_b, GROWTH),
    )


@triton.jit
@no_type_check
def has_jump(sizes, limits, CORE: tl.constexpr, READ: tl.constexpr):
    """Whether one of the columns had a difference beyond its limit."""
    beyond = tl.full([], 0, tl.int32)
    if READ:
        beyond = tl.maximum(beyond, tl.max((sizes[0] > limits[0]).to(tl.int32), axis=0))
    if CORE:
        beyond = tl.maximum(beyond, tl.max(((sizes[1] > limits[1]) | (sizes[2] > limits[2])).to(tl.int32), axis=0))
        beyond = tl.maximum(beyond, tl.max((sizes[3] > limits[3]).to(tl.int32), axis=0))
    return beyond > 0


@triton.jit
@no_type_check
def limits_anew(limit, floor, difference, gone, GROWTH: tl.constexpr, MOST_DECAY: tl.constexpr):
    """Limits of columns that have decayed so much that counting begins anew: no lower than they can be by now."""
    anew = tl.maximum(tl.maximum(limit / MOST_DECAY, floor), GROWTH * tl.abs(difference))
    return tl.where(gone, anew, limit)


@triton.jit
@no_type_check
def last_jump(jump_y, jump_q_k, jump_b, CORE: tl.constexpr, READ: tl.constexpr):
    """The last of the jumps of all columns."""
    last = tl.full([], -1, tl.int32)
    if READ:
        last = tl.max(jump_y, axis=0)
    if CORE:
        last = tl.maximum(last, tl.maximum(tl.max(jump_q_k, axis=0), tl.max(jump_b, axis=0)))
    return last
