"""Instance norm, 2x2 max pool and ReLU on a GPU: a program holds some channels of a whole image.

Images lie channels-last. Forward: each image is read once, and only the pooled one is written. Backward: the image is
read once more, everything in between is computed again, and the gradient is written.
"""

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def _pixels(x, image, channel, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr):
    """The four pixels of each window, where they lie and whether they are there, and whether a window is whole."""
    window = tl.arange(0, BLOCK)
    across = (W + 1) // 2
    top = 2 * (window // across)
    left = 2 * (window % across)
    exists = window < across * ((H + 1) // 2)
    at = image * (H * W * C) + ((top * W + left) * C)[:, None] + channel[None, :]
    in_channel = (channel < C)[None, :]
    in_0 = exists[:, None] & in_channel
    in_1 = (exists & (left + 1 < W))[:, None] & in_channel
    in_2 = (exists & (top + 1 < H))[:, None] & in_channel
    in_3 = (exists & (left + 1 < W) & (top + 1 < H))[:, None] & in_channel
    x_0 = tl.load(x + at, mask=in_0, other=0.0).to(tl.float32)
    x_1 = tl.load(x + at + C, mask=in_1, other=0.0).to(tl.float32)
    x_2 = tl.load(x + at + W * C, mask=in_2, other=0.0).to(tl.float32)
    x_3 = tl.load(x + at + (W + 1) * C, mask=in_3, other=0.0).to(tl.float32)
    pooled = (top // 2) * (W // 2) + left // 2
    return at, in_0, in_1, in_2, in_3, x_0, x_1, x_2, x_3, pooled


@triton.jit
@no_type_check
def _normalised(in_0, in_1, in_2, in_3, x_0, x_1, x_2, x_3, eps, N: tl.constexpr):
    """The four pixels with mean 0 and deviation 1, and the inverse of what the deviation was."""
    mean = tl.sum(x_0 + x_1 + x_2 + x_3, axis=0) / N
    x_0 = tl.where(in_0, x_0 - mean[None, :], 0.0)
    x_1 = tl.where(in_1, x_1 - mean[None, :], 0.0)
    x_2 = tl.where(in_2, x_2 - mean[None, :], 0.0)
    x_3 = tl.where(in_3, x_3 - mean[None, :], 0.0)
    square = tl.sum(x_0 * x_0 + x_1 * x_1 + x_2 * x_2 + x_3 * x_3, axis=0) / N
    inverse = 1.0 / tl.sqrt(square + eps)
    return x_0 * inverse[None, :], x_1 * inverse[None, :], x_2 * inverse[None, :], x_3 * inverse[None, :], inverse


@triton.jit
@no_type_check
def _keep(best, best_at, value, at: tl.constexpr):
    """Keep the larger value; the earlier one where they are equal."""
    # A comparison with NaN is false, so a NaN would be lost: it wins instead.
    better = (value > best) | (value != value)
    return tl.where(better, value, best), tl.where(better, at, best_at)


@triton.jit
@no_type_check
def _best(z_0, z_1, z_2, z_3, scale, shift):
    """The largest of the four after scale and shift, and which it is."""
    best = z_0 * scale[None, :] + shift[None, :]
    best_at = tl.zeros_like(best).to(tl.int32)
    best, best_at = _keep(best, best_at, z_1 * scale[None, :] + shift[None, :], 1)
    best, best_at = _keep(best, best_at, z_2 * scale[None, :] + shift[None, :], 2)
    best, best_at = _keep(best, best_at, z_3 * scale[None, :] + shift[None, :], 3)
    return best, best_at


@triton.jit(do_not_specialize=["eps"])
@no_type_check
def instance_norm_fwd_kernel(
    x, weight, bias, y, eps,
    C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Normalise, pool and rectify some channels of an image."""
    image = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    _, in_0, in_1, in_2, in_3, x_0, x_1, x_2, x_3, pooled = _pixels(x, image, channel, C, H, W, BLOCK)
    z_0, z_1, z_2, z_3, _ = _normalised(in_0, in_1, in_2, in_3, x_0, x_1, x_2, x_3, eps, H * W)
    scale = tl.load(weight + channel, mask=channel < C, other=0.0).to(tl.float32)
    shift = tl.load(bias + channel, mask=channel < C, other=0.0).to(tl.float32)
    best, _ = _best(z_0, z_1, z_2, z_3, scale, shift)
    to = image * ((H // 2) * (W // 2) * C) + (pooled * C)[:, None] + channel[None, :]
    # A NaN must stay one, so that it stops the run: a maximum with zero would hide it.
    tl.store(y + to, tl.where(best < 0.0, 0.0, best), mask=in_3)


@triton.jit(do_not_specialize=["eps"])
@no_type_check
def instance_norm_bwd_kernel(
    x, dy, weight, bias, dx, dweights, dbiases, eps,
    C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """The gradient of some channels of an image, and what they add to those of weight and bias."""
    image = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    at, in_0, in_1, in_2, in_3, x_0, x_1, x_2, x_3, pooled = _pixels(x, image, channel, C, H, W, BLOCK)
    z_0, z_1, z_2, z_3, inverse = _normalised(in_0, in_1, in_2, in_3, x_0, x_1, x_2, x_3, eps, H * W)
    scale = tl.load(weight + channel, mask=channel < C, other=0.0).to(tl.float32)
    shift = tl.load(bias + channel, mask=channel < C, other=0.0).to(tl.float32)
    best, best_at = _best(z_0, z_1, z_2, z_3, scale, shift)
    of = image * ((H // 2) * (W // 2) * C) + (pooled * C)[:, None] + channel[None, :]
    g = tl.load(dy + of, mask=in_3, other=0.0).to(tl.float32)
    g = tl.where(best > 0.0, g, 0.0)
    best_z = tl.where(best_at == 0, z_0, tl.where(best_at == 1, z_1, tl.where(best_at == 2, z_2, z_3)))
    dweight = tl.sum(g * best_z, axis=0)
    dbias = tl.sum(g, axis=0)
    here = image * C + channel
    tl.store(dweights + here, dweight, mask=channel < C)
    tl.store(dbiases + here, dbias, mask=channel < C)
    # dx = scale / deviation * (g at the winner - mean of g - z * mean of g z)
    factor = (scale * inverse)[None, :]
    mean_g = (dbias / (H * W))[None, :]
    mean_gz = (dweight / (H * W))[None, :]
    tl.store(dx + at, factor * (tl.where(best_at == 0, g, 0.0) - mean_g - z_0 * mean_gz), mask=in_0)
    tl.store(dx + at + C, factor * (tl.where(best_at == 1, g, 0.0) - mean_g - z_1 * mean_gz), mask=in_1)
    tl.store(dx + at + W * C, factor * (tl.where(best_at == 2, g, 0.0) - mean_g - z_2 * mean_gz), mask=in_2)
    tl.store(dx + at + (W + 1) * C, factor * (tl.where(best_at == 3, g, 0.0) - mean_g - z_3 * mean_gz), mask=in_3)
