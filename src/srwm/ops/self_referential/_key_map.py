"""From what the core puts out to q and k: the key map, and the way from columns of a tile to its rows.

The core puts out column vectors: each thread holds the numbers of its columns. Key and query are then multiplied with
rows. Where several warps share a matrix, they wait for each other on this way. The exponentials of a softmax are taken
where the columns are, since no number is there twice; keys of unit length need none, and are made of rows, which every
warp has for itself: none waits for the length. One warp alone has nobody to wait for.
"""

from typing import no_type_check

import triton
import triton.language as tl

from .._tiles import LANES_FIRST, l2_scales, lay_out_like, softmax_rows


@triton.jit
@no_type_check
def map_keys(z_q, z_k, b_x, in_row, L2_EPS: tl.constexpr, WARPS: tl.constexpr):
    """Map what the core put out, two column vectors, to q and k.

    They are returned as row vectors, laid out as `b_x` is, as column vectors, and with what "l2" multiplied them with.
    """
    row_q = tl.reshape(z_q, b_x.shape)
    row_k = tl.reshape(z_k, b_x.shape)
    scale_q = 1.0
    scale_k = 1.0
    if L2_EPS is None:
        row_q, row_k = softmax_rows(row_q, row_k, in_row)
        z_q = tl.reshape(row_q, z_q.shape)
        z_k = tl.reshape(row_k, z_k.shape)
    else:
        if WARPS > 1:
            row_q = lay_out_like(row_q, b_x)
            row_k = lay_out_like(row_k, b_x)
            scale_q = _l2_scale(row_q, L2_EPS)
            scale_k = _l2_scale(row_k, L2_EPS)
        else:
            scale_q, scale_k = tl.split(l2_scales(row_q, row_k, L2_EPS))
        row_q *= scale_q
        row_k *= scale_k
        z_q *= scale_q
        z_k *= scale_k
    return row_q, row_k, z_q, z_k, scale_q, scale_k


@triton.jit
@no_type_check
def _l2_scale(row, EPS: tl.constexpr):
    """What scales a row vector to unit length."""
    WITHIN: tl.constexpr = 1 if LANES_FIRST else 0
    return 1 / tl.sqrt(tl.sum(tl.sum(row * row, axis=WITHIN), axis=0) + EPS)
