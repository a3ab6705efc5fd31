"""Batch norm, 2x2 max pool and ReLU on a GPU, reading and writing each large tensor as few times as can be.

Images lie channels-last, so that a row is one pixel with all its channels. Forward: one pass for the statistics, one
that normalises, pools and rectifies; only pooled tensors are written. Backward: one pass over the pooled gradient for
the sums that batch norm needs, one over the input. Which pixel of a window won is found again instead of stored.
Partial sums are added up in a fixed order, so results are bitwise reproducible.
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "tiles"])
@no_type_check
def statistics_kernel(x, means, squares, rows, tiles, C: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr):
    """Mean and sum of squared distances from it over a share of the rows, merged tile by tile (Chan et al., 1979)."""
    channel = tl.arange(0, CHANNELS)
    in_channel = channel < C
    mean = tl.zeros([CHANNELS], dtype=tl.float32)
    square = tl.zeros([CHANNELS], dtype=tl.float32)
    seen = 0.0
    for tile in range(tiles):
        first = (tl.program_id(0).to(tl.int64) * tiles + tile) * BLOCK
        row = first + tl.arange(0, BLOCK)
        inside = (row < rows)[:, None] & in_channel[None, :]
        b_x = tl.load(x + row[:, None] * C + channel[None, :], mask=inside, other=0.0).to(tl.float32)
        number = tl.minimum(tl.maximum(rows - first, 0), BLOCK).to(tl.float32)
        tile_mean = tl.sum(b_x, axis=0) / tl.maximum(number, 1.0)
        distance = tl.where(inside, b_x - tile_mean[None, :], 0.0)
        share = number / tl.maximum(seen + number, 1.0)
        delta = tile_mean - mean
        mean += delta * share
        square += tl.sum(distance * distance, axis=0) + delta * delta * (seen * share)
        seen += number
    here = tl.program_id(0) * C + channel
    tl.store(means + here, mean, mask=in_channel)
    tl.store(squares + here, square, mask=in_channel)


@triton.jit(do_not_specialize=["rows", "parts", "per_part"])
@no_type_check
def merge_kernel(
    means, squares, mean, square, rows, parts, per_part, C: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr
):
    """Merge the shares of `statistics_kernel`."""
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    in_channel = channel < C
    total = rows.to(tl.float32)
    b_mean = tl.zeros([CHANNELS], dtype=tl.float32)
    for first in range(0, parts, BLOCK):
        part = first + tl.arange(0, BLOCK)
        inside = (part < parts)[:, None] & in_channel[None, :]
        weight = tl.minimum(tl.maximum(rows - part * per_part, 0), per_part).to(tl.float32) / total
        shares = tl.load(means + part[:, None] * C + channel[None, :], mask=inside, other=0.0)
        b_mean += tl.sum(shares * weight[:, None], axis=0)
    b_square = tl.zeros([CHANNELS], dtype=tl.float32)
    for first in range(0, parts, BLOCK):
        part = first + tl.arange(0, BLOCK)
        inside = (part < parts)[:, None] & in_channel[None, :]
        number = tl.minimum(tl.maximum(rows - part * per_part, 0), per_part).to(tl.float32)
        shares = tl.load(means + part[:, None] * C + channel[None, :], mask=inside, other=0.0)
        within = tl.load(squares + part[:, None] * C + channel[None, :], mask=inside, other=0.0)
        away = shares - b_mean[None, :]
        b_square += tl.sum(tl.where(inside, within + away * away * number[:, None], 0.0), axis=0)
    tl.store(mean + channel, b_mean, mask=in_channel)
    tl.store(square + channel, b_square, mask=in_channel)


@triton.jit
@no_type_check
def _affine(mean, square, weight, bias, channel, in_channel, total, eps):
    """Mean, inverse deviation, and the affine map that normalises: x * scale + shift."""
    b_mean = tl.load(mean + channel, mask=in_channel, other=0.0)
    b_square = tl.load(square + channel, mask=in_channel, other=0.0)
    b_inverse = 1.0 / tl.sqrt(b_square / total + eps)
    scale = tl.load(weight + channel, mask=in_channel, other=0.0) * b_inverse
    shift = tl.load(bias + channel, mask=in_channel, other=0.0) - b_mean * scale
    return b_mean, b_inverse, scale, shift


@triton.jit
@no_type_check
def _pick(best, best_x, best_at, value, b_x, at: tl.constexpr):
    """Keep the larger value; the earlier one where they are equal."""
    better = value > best
    return tl.where(better, value, best), tl.where(better, b_x, best_x), tl.where(better, at, best_at)


@triton.jit(do_not_specialize=["windows", "height", "width", "total", "eps"])
@no_type_check
def pool_fwd_kernel(
    x, mean, square, weight, bias, y, winner, windows, height, width, total, eps,
    C: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Normalise, pool and rectify a block of windows; keep the winning input of each for the backward pass."""
    channel = tl.arange(0, CHANNELS)
    in_channel = channel < C
    _, _, scale, shift = _affine(mean, square, weight, bias, channel, in_channel, total, eps)
    window = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = (window < windows)[:, None] & in_channel[None, :]
    across = width // 2
    down = height // 2
    image = window // (across * down)
    corner = (image * height + 2 * ((window // across) % down)) * width + 2 * (window % across)
    at = corner[:, None] * C + channel[None, :]
    best_x = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    best = best_x * scale[None, :] + shift[None, :]
    best_at = tl.zeros([BLOCK, CHANNELS], dtype=tl.int32)
    b_x = tl.load(x + at + C, mask=inside, other=0.0).to(tl.float32)
    best, best_x, best_at = _pick(best, best_x, best_at, b_x * scale[None, :] + shift[None, :], b_x, 1)
    b_x = tl.load(x + at + width * C, mask=inside, other=0.0).to(tl.float32)
    best, best_x, best_at = _pick(best, best_x, best_at, b_x * scale[None, :] + shift[None, :], b_x, 2)
    b_x = tl.load(x + at + (width + 1) * C, mask=inside, other=0.0).to(tl.float32)
    best, best_x, best_at = _pick(best, best_x, best_at, b_x * scale[None, :] + shift[None, :], b_x, 3)
    to = window[:, None] * C + channel[None, :]
    # A NaN must stay one, so that it stops the run: a maximum with zero would hide it.
    tl.store(y + to, tl.where(best < 0.0, 0.0, best), mask=inside)
    tl.store(winner + to, best_x, mask=inside)


@triton.jit(do_not_specialize=["windows", "tiles", "total", "eps"])
@no_type_check
def pool_sums_kernel(
    dy, winner, mean, square, weight, bias, sums, products, windows, tiles, total, eps,
    C: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Sum the gradient, and the gradient times the normalised input, over a share of the windows."""
    channel = tl.arange(0, CHANNELS)
    in_channel = channel < C
    b_mean, b_inverse, scale, shift = _affine(mean, square, weight, bias, channel, in_channel, total, eps)
    b_sum = tl.zeros([CHANNELS], dtype=tl.float32)
    b_product = tl.zeros([CHANNELS], dtype=tl.float32)
    for tile in range(tiles):
        first = (tl.program_id(0).to(tl.int64) * tiles + tile) * BLOCK
        window = first + tl.arange(0, BLOCK)
        inside = (window < windows)[:, None] & in_channel[None, :]
        at = window[:, None] * C + channel[None, :]
        b_x = tl.load(winner + at, mask=inside, other=0.0).to(tl.float32)
        b_dy = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        b_dy = tl.where(b_x * scale[None, :] + shift[None, :] > 0.0, b_dy, 0.0)
        b_sum += tl.sum(b_dy, axis=0)
        b_product += tl.sum(b_dy * ((b_x - b_mean[None, :]) * b_inverse[None, :]), axis=0)
    here = tl.program_id(0) * C + channel
    tl.store(sums + here, b_sum, mask=in_channel)
    tl.store(products + here, b_product, mask=in_channel)


@triton.jit(do_not_specialize=["parts"])
@no_type_check
def add_up_kernel(sums, products, dbias, dweight, parts, C: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr):
    """Add up the shares of `pool_sums_kernel`."""
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    in_channel = channel < C
    b_sum = tl.zeros([CHANNELS], dtype=tl.float32)
    b_product = tl.zeros([CHANNELS], dtype=tl.float32)
    for first in range(0, parts, BLOCK):
        part = first + tl.arange(0, BLOCK)
        inside = (part < parts)[:, None] & in_channel[None, :]
        b_sum += tl.sum(tl.load(sums + part[:, None] * C + channel[None, :], mask=inside, other=0.0), axis=0)
        b_product += tl.sum(tl.load(products + part[:, None] * C + channel[None, :], mask=inside, other=0.0), axis=0)
    tl.store(dbias + channel, b_sum, mask=in_channel)
    tl.store(dweight + channel, b_product, mask=in_channel)


@triton.jit(do_not_specialize=["windows", "height", "width", "total", "eps"])
@no_type_check
def pool_bwd_kernel(
    x, dy, mean, square, weight, bias, dbias, dweight, dx, windows, height, width, total, eps,
    C: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """The gradient of the input, window by window; half windows at odd edges took part in the statistics alone."""
    channel = tl.arange(0, CHANNELS)
    in_channel = channel < C
    b_mean, b_inverse, scale, shift = _affine(mean, square, weight, bias, channel, in_channel, total, eps)
    mean_dy = tl.load(dbias + channel, mask=in_channel, other=0.0) / total
    mean_product = tl.load(dweight + channel, mask=in_channel, other=0.0) / total
    # dx = scale * (g - mean_dy - normalised * mean_product), as an affine map of x.
    slope = scale * mean_product * b_inverse
    offset = slope * b_mean - scale * mean_dy

    window = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    exists = window < windows
    across = (width + 1) // 2
    down = (height + 1) // 2
    image = window // (across * down)
    top = 2 * ((window // across) % down)
    left = 2 * (window % across)
    right_there = exists & (left + 1 < width)
    below_there = exists & (top + 1 < height)
    whole = right_there & below_there
    in_0 = exists[:, None] & in_channel[None, :]
    in_1 = right_there[:, None] & in_channel[None, :]
    in_2 = below_there[:, None] & in_channel[None, :]
    in_3 = whole[:, None] & in_channel[None, :]
    at = ((image * height + top) * width + left)[:, None] * C + channel[None, :]
    x_0 = tl.load(x + at, mask=in_0, other=0.0).to(tl.float32)
    x_1 = tl.load(x + at + C, mask=in_1, other=0.0).to(tl.float32)
    x_2 = tl.load(x + at + width * C, mask=in_2, other=0.0).to(tl.float32)
    x_3 = tl.load(x + at + (width + 1) * C, mask=in_3, other=0.0).to(tl.float32)
    best = x_0 * scale[None, :] + shift[None, :]
    best_at = tl.zeros([BLOCK, CHANNELS], dtype=tl.int32)
    best, _, best_at = _pick(best, best, best_at, x_1 * scale[None, :] + shift[None, :], best, 1)
    best, _, best_at = _pick(best, best, best_at, x_2 * scale[None, :] + shift[None, :], best, 2)
    best, _, best_at = _pick(best, best, best_at, x_3 * scale[None, :] + shift[None, :], best, 3)

    pooled = (image * (height // 2) + top // 2) * (width // 2) + left // 2
    b_dy = tl.load(dy + pooled[:, None] * C + channel[None, :], mask=in_3, other=0.0).to(tl.float32)
    g = tl.where(best > 0.0, b_dy * scale[None, :], 0.0)
    tl.store(dx + at, tl.where(best_at == 0, g, 0.0) - x_0 * slope[None, :] + offset[None, :], mask=in_0)
    tl.store(dx + at + C, tl.where(best_at == 1, g, 0.0) - x_1 * slope[None, :] + offset[None, :], mask=in_1)
    tl.store(dx + at + width * C, tl.where(best_at == 2, g, 0.0) - x_2 * slope[None, :] + offset[None, :], mask=in_2)
    tl.store(
        dx + at + (width + 1) * C, tl.where(best_at == 3, g, 0.0) - x_3 * slope[None, :] + offset[None, :], mask=in_3
    )
