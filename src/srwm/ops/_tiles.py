"""How the Triton kernels hold a matrix, and the few operations on it that they are made of.

A matrix is a tile `[LANES, columns, R]` with row = lane R + r. Triton hands out the threads of a warp from the first
axis on, so `LANES` threads share a column, the other `32 / LANES` and all warps lie along the columns, and each thread
holds `R` rows of its columns. A sum over rows then takes log2(LANES) exchanges between threads and never leaves the
warp. Row vectors (x, q, k) are `[LANES, R]`; column vectors (y, the differences) are `[columns]`. `NB` columns are one
for each thread along that axis.
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def rows(ROWS: tl.constexpr, LANES: tl.constexpr):
    """The row that each place of a row vector stands for."""
    return tl.arange(0, LANES)[:, None] * (ROWS // LANES) + tl.arange(0, ROWS // LANES)[None, :]


@triton.jit
@no_type_check
def vec_mat(v, w):
    """The product v W, a sum over rows: [LANES, R], [LANES, N, R] -> [N]."""
    return tl.sum(tl.sum(v[:, None, :] * w, axis=2), axis=0)


@triton.jit
@no_type_check
def outer(v, g):
    """The rank-1 matrix v g: [LANES, R], [N] -> [LANES, N, R]."""
    return v[:, None, :] * g[None, :, None]


@triton.jit
@no_type_check
def mat_vec_share(w, g, NB: tl.constexpr):
    """Each thread's share of W g, a sum over columns: [LANES, N, R], [N] -> [LANES, NB, R]."""
    p = w * g[None, :, None]
    return tl.sum(tl.reshape(p, [p.shape[0], p.shape[1] // NB, NB, p.shape[2]]), axis=1)


@triton.jit
@no_type_check
def dot_share(a, b, NB: tl.constexpr):
    """Each thread's share of the inner product of two column vectors: [N], [N] -> [NB]."""
    return tl.sum(tl.reshape(a * b, [a.shape[0] // NB, NB]), axis=0)


@triton.jit
@no_type_check
def dot_rows(a, b):
    """The inner product of two row vectors."""
    return tl.sum(tl.sum(a * b, axis=1), axis=0)


@triton.jit
@no_type_check
def softmax_rows(z, inside):
    """Softmax of a row vector over the rows that are `inside`."""
    z = tl.where(inside, z, float("-inf"))
    e = tl.exp(z - tl.max(tl.max(z, axis=1), axis=0))
    return e / tl.sum(tl.sum(e, axis=1), axis=0)


@triton.jit
@no_type_check
def pick(v, index, i):
    """Element i of a vector, as a scalar."""
    return tl.sum(tl.where(index == i, v, 0.0), axis=0)


@triton.jit
@no_type_check
def load_tile(matrix, first, row, col, D: tl.constexpr, n, M: tl.constexpr, unit, ACC: tl.constexpr):
    """Load columns `first + col`, those with col < n, of a [D, M] matrix as a tile.

    `unit` is 1, but the compiler must not know it: it would give each thread neighbouring columns so as to load them
    in one go, once, and then keep that layout for the whole sequence.
    """
    offset = row[:, None, :] * M + (first + col)[None, :, None] * unit
    inside = (row < D)[:, None, :] & (col < n)[None, :, None]
    return tl.load(matrix + offset, mask=inside, other=0.0).to(ACC)


@triton.jit
@no_type_check
def store_tile(matrix, first, row, col, D: tl.constexpr, n, M: tl.constexpr, unit, tile):
    """Store a tile where `load_tile` loads it."""
    offset = row[:, None, :] * M + (first + col)[None, :, None] * unit
    inside = (row < D)[:, None, :] & (col < n)[None, :, None]
    tl.store(matrix + offset, tile, mask=inside)
