"""How the Triton kernels hold a matrix, and the few operations on it that they are made of.

A matrix is a tile `[A, columns, B]` with row = a B + b. Of A and B, one is `LANES`, the number of threads that share a
column; the other is the number of rows that each thread holds of its columns. The other `32 / LANES` threads of a warp,
and all warps, lie along the columns. A sum over rows then takes log2(LANES) exchanges between threads and never leaves
the warp. Row vectors (x, q, k) are `[A, B]`; column vectors (y, the differences) are `[columns]`. `NB` columns are one
for each thread along that axis.

Nothing in Triton's language says which thread holds what; it follows from the shape. Up to version 3.6 the threads of a
warp are handed out from the first axis on, since then from the last. Only speed depends on it.
"""

from typing import no_type_check

import triton
import triton.language as tl

LANES_FIRST = tl.constexpr(tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 7))


@triton.jit
@no_type_check
def rows(ROWS: tl.constexpr, LANES: tl.constexpr):
    """The row that each place of a row vector stands for [A, B]."""
    A: tl.constexpr = LANES if LANES_FIRST else ROWS // LANES
    return tl.arange(0, A)[:, None] * (ROWS // A) + tl.arange(0, ROWS // A)[None, :]


@triton.jit
@no_type_check
def zeros(row, N: tl.constexpr, ACC: tl.constexpr):
    """A tile of N columns of zeros."""
    return tl.zeros([row.shape[0], N, row.shape[1]], ACC)


@triton.jit
@no_type_check
def sum_rows(w):
    """The sums over rows: [A, N, B] -> [N]."""
    # The rows that a thread holds come first: what is exchanged between threads is then one number a column.
    if LANES_FIRST:
        result = tl.sum(tl.sum(w, axis=2), axis=0)
    else:
        result = tl.sum(tl.sum(w, axis=0), axis=1)
    return result


@triton.jit
@no_type_check
def vec_mat(v, w):
    """The product v W, a sum over rows: [A, B], [A, N, B] -> [N]."""
    return sum_rows(v[:, None, :] * w)


@triton.jit
@no_type_check
def outer(v, g):
    """The rank-1 matrix v g: [A, B], [N] -> [A, N, B]."""
    return v[:, None, :] * g[None, :, None]


@triton.jit
@no_type_check
def mat_vec_share(w, g, NB: tl.constexpr):
    """Each thread's share of W g, a sum over columns: [A, N, B], [N] -> [A, NB, B]."""
    p = w * g[None, :, None]
    if p.shape[1] > NB:
        p = tl.sum(tl.reshape(p, [p.shape[0], p.shape[1] // NB, NB, p.shape[2]]), axis=1)
    return p


@triton.jit
@no_type_check
def sum_both(a, b):
    """Two sums over columns from their shares, with one exchange between warps: [A, NB, B] -> [A, B]."""
    return tl.split(tl.sum(tl.join(a, b), axis=1))


@triton.jit
@no_type_check
def dot_share(a, b, NB: tl.constexpr):
    """Each thread's share of the inner product of two column vectors: [N], [N] -> [NB]."""
    p = a * b
    if p.shape[0] > NB:
        p = tl.sum(tl.reshape(p, [p.shape[0] // NB, NB]), axis=0)
    return p


@triton.jit
@no_type_check
def mat_mat_share(a, b, NB: tl.constexpr):
    """Each thread's share of the inner product of two tiles: [A, N, B], [A, N, B] -> [A, NB, B]."""
    p = a * b
    if p.shape[1] > NB:
        p = tl.sum(tl.reshape(p, [p.shape[0], p.shape[1] // NB, NB, p.shape[2]]), axis=1)
    return p


@triton.jit
@no_type_check
def dot_rows(a, b):
    """The inner product of two row vectors."""
    return tl.sum(tl.sum(a * b, axis=1 if LANES_FIRST else 0), axis=0)


@triton.jit
@no_type_check
def softmax_rows(a, b, inside):
    """Softmaxes of two row vectors over the rows that are `inside`; together they wait for each other only once."""
    WITHIN: tl.constexpr = 1 if LANES_FIRST else 0
    z = tl.where(inside[:, :, None], tl.join(a, b), float("-inf"))
    e = tl.exp(z - tl.max(tl.max(z, axis=WITHIN), axis=0)[None, None, :])
    return tl.split(e / tl.sum(tl.sum(e, axis=WITHIN), axis=0)[None, None, :])


@triton.jit
@no_type_check
def l2_scales(a, b, EPS: tl.constexpr):
    """What scales two row vectors to unit length, as a vector of two; together they wait for each other only once."""
    WITHIN: tl.constexpr = 1 if LANES_FIRST else 0
    z = tl.join(a, b)
    return 1 / tl.sqrt(tl.sum(tl.sum(z * z, axis=WITHIN), axis=0) + EPS)


@triton.jit
@no_type_check
def clip(v, LIMIT: tl.constexpr):
    """The vector with no number beyond a limit; NaN stays NaN. No limit is None."""
    if LIMIT is not None:
        limit = tl.full([], LIMIT, v.dtype)
        v = tl.where(v > limit, limit, tl.where(v < -limit, -limit, v))
    return v


@triton.jit
@no_type_check
def through_clip(dv, v, LIMIT: tl.constexpr):
    """The gradient of what was clipped to v: nothing, where it was."""
    if LIMIT is not None:
        dv = tl.where(tl.abs(v) < tl.full([], LIMIT, v.dtype), dv, 0.0)
    return dv


@triton.jit
@no_type_check
def lay_out_as_rows(v, w):
    """A row vector, laid out as the rows of a tile are, each in every warp.

    The compiler lays a vector out by what it meets first, and takes it to another layout where it is needed: through
    shared memory, a wait of all warps. Nothing is above infinity, but it finds that out only after laying out.
    """
    return v - tl.sum(tl.where(w > float("inf"), 1.0, 0.0).to(v.dtype), axis=1)


@triton.jit
@no_type_check
def lay_out_like(v, like):
    """A row vector, laid out as another one; as above, in a way that costs nothing itself."""
    return tl.where(like > float("inf"), like, v)


@triton.jit
@no_type_check
def to_lanes(v, lane, col):
    """The first elements of a column vector, a lane each: [NB] -> [LANES]."""
    if LANES_FIRST:
        result = tl.sum(tl.where(lane[:, None] == col[None, :], v[None, :], 0.0), axis=1)
    else:
        result = tl.sum(tl.where(lane[None, :] == col[:, None], v[:, None], 0.0), axis=0)
    return result


@triton.jit
@no_type_check
def from_lanes(v, lane, col):
    """A vector with a lane for each element as the start of a column vector: [LANES] -> [NB]."""
    if LANES_FIRST:
        result = tl.sum(tl.where(lane[:, None] == col[None, :], v[:, None], 0.0), axis=0)
    else:
        result = tl.sum(tl.where(lane[None, :] == col[:, None], v[None, :], 0.0), axis=1)
    return result


@triton.jit
@no_type_check
def sum_four(a, b, c, d, lane):
    """The sums of four column vectors, a lane each, with one exchange between warps: [NB] -> [LANES]."""
    if LANES_FIRST:
        first = tl.where(lane[:, None] == 0, a[None, :], b[None, :])
        second = tl.where(lane[:, None] == 2, c[None, :], d[None, :])
        result = tl.sum(tl.where(lane[:, None] < 2, first, second), axis=1)
    else:
        first = tl.where(lane[None, :] == 0, a[:, None], b[:, None])
        second = tl.where(lane[None, :] == 2, c[:, None], d[:, None])
        result = tl.sum(tl.where(lane[None, :] < 2, first, second), axis=0)
    return result


@triton.jit
@no_type_check
def sum_six(a, b, c, d, e, f, lane):
    """The sums of six column vectors, a lane each, with one exchange between warps: [NB] -> [LANES]."""
    if LANES_FIRST:
        each = lane[:, None]
        a, b, c, d, e, f = a[None, :], b[None, :], c[None, :], d[None, :], e[None, :], f[None, :]
    else:
        each = lane[None, :]
        a, b, c, d, e, f = a[:, None], b[:, None], c[:, None], d[:, None], e[:, None], f[:, None]
    four = tl.where(each < 2, tl.where(each == 0, a, b), tl.where(each == 2, c, d))
    return tl.sum(tl.where(each < 4, four, tl.where(each == 4, e, f)), axis=1 if LANES_FIRST else 0)


@triton.jit
@no_type_check
def column_limits(w, GROWTH: tl.constexpr):
    """The largest number of each column, times GROWTH: [A, N, B] -> [N]."""
    size = tl.abs(w)
    if LANES_FIRST:
        result = tl.max(tl.max(size, axis=2), axis=0)
    else:
        result = tl.max(tl.max(size, axis=0), axis=1)
    return GROWTH * result


@triton.jit
@no_type_check
def find_jumps(size, limits, last, t, GROWTH: tl.constexpr):
    """Set limits that a size is beyond anew, and the last jumps of those columns to step t."""
    beyond = size > limits
    return tl.where(beyond, GROWTH * size, limits), tl.where(beyond, t, last)


@triton.jit
@no_type_check
def limits_when_decayed(limits, undone, keep, MOST_DECAY: tl.constexpr):
    """Limits after a step that keeps a share, and what undoing the decays since they were set would multiply with.

    Where that is too much, any size is beyond its limit, and counting begins anew.
    """
    share = tl.abs(keep)
    gone = undone > MOST_DECAY * share
    return tl.where(gone, -1.0, limits), tl.where(gone, 1.0, undone / tl.where(gone, 1.0, share))


@triton.jit
@no_type_check
def largest_row(v):
    """The largest number of a row vector, without its sign."""
    return tl.max(tl.max(tl.abs(v), axis=1 if LANES_FIRST else 0), axis=0)


@triton.jit
@no_type_check
def store_jump(place, jump, SHARED: tl.constexpr):
    """Store the last jump of an interval; where several programs run a head, the last of theirs."""
    if SHARED:
        tl.atomic_max(place, jump)
    else:
        tl.store(place, jump)


@triton.jit
@no_type_check
def any_jump(jumps, intervals):
    """Whether one of the intervals of a sequence has a jump.

    A maximum over the lanes of a warp is known to be the same in all of them: what is done if there is none then needs
    no instructions that bring threads together again.
    """
    lane = tl.arange(0, 32)
    last = tl.full([32], -1, tl.int32)
    for j in range(0, intervals, 32):
        last = tl.maximum(last, tl.load(jumps + j + lane, mask=j + lane < intervals, other=-1))
    return tl.max(last, axis=0) >= 0


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


@triton.jit
@no_type_check
def store_column(place, v, col, n, row, unit):
    """Store the elements `col < n` of a column vector, each by a thread that has it.

    As a vector, the compiler would hand its elements to other threads first, through shared memory; a tile of one row
    for each lane stays where it is.
    """
    lane = tl.arange(0, row.shape[0])[:, None, None]
    tile = tl.broadcast_to(v[None, :, None], [row.shape[0], v.shape[0], 1])
    offset = lane * 0 + col[None, :, None] * unit
    tl.store(place + offset, tile, mask=(lane == 0) & (col < n)[None, :, None])
