"""Batch norm, 2x2 max pool and ReLU on a CPU, compiled by numba; the same steps as the kernels for a GPU.

The images are cut into a fixed number of shares, whatever the number of threads, and sums over shares are added up in
order: results are bitwise reproducible. Numba compiles the inner loops, over the channels of a pixel, to vector code.
"""

import functools
import inspect
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float32]

_SHARES = 16
"""Shares that the images are cut into."""
_TILE = 64
"""Pixels whose mean is taken at once, while they are in the cache."""


def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop at its first use, and keep it on disk."""
    # Tests wrap functions to check their arguments; numba wants the function itself.
    loop: Callable[..., None] = numba.njit(nogil=True, cache=True, error_model="numpy")(inspect.unwrap(function))
    return loop


def statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of each channel, and the sum of squared distances from it."""
    pixels = _array(x).reshape(-1, x.shape[1])
    means, squares = np.zeros((2, _SHARES, x.shape[1]), dtype=np.float32)

    bounds = _share_out(
        len(pixels), lambda share, first, last: _statistics(pixels[first:last], means[share], squares[share])
    )
    # Merging as Chan et al. (1979), in double precision, over the fixed shares.
    numbers = np.diff(bounds).astype(np.float64)[:, None] / len(pixels)
    mean = (means * numbers).sum(axis=0)
    square = squares.sum(axis=0, dtype=np.float64) + (np.square(means - mean) * numbers).sum(axis=0) * len(pixels)
    return torch.from_numpy(mean.astype(np.float32)), torch.from_numpy(square.astype(np.float32))


def forward(
    x: Tensor, mean: Tensor, square: Tensor, weight: Tensor, bias: Tensor, total: int, eps: float
) -> tuple[Tensor, Tensor]:
    """The pooled images, and the input that won each window."""
    n, c, h, w = x.shape
    shape, layout = (n, c, h // 2, w // 2), torch.channels_last
    y, winner = (torch.empty(shape, memory_format=layout) for _ in range(2))
    _, scale, shift = _affine(mean, square, weight, bias, total, eps)
    source, pooled, won = _array(x), _array(y), _array(winner)

    _share_out(
        n,
        lambda _, first, last: _pool_forward(source[first:last], scale, shift, pooled[first:last], won[first:last]),
    )
    return y, winner


def sums(
    dy: Tensor, winner: Tensor, mean: Tensor, square: Tensor, weight: Tensor, bias: Tensor, total: int, eps: float
) -> Tensor:
    """The sums over all windows of the gradient, and of the gradient times the normalised input [2, c]."""
    inverse, scale, shift = _affine(mean, square, weight, bias, total, eps)
    channels = dy.shape[1]
    gradient, won = _array(dy).reshape(-1, channels), _array(winner).reshape(-1, channels)
    shares = np.zeros((_SHARES, 2, channels), dtype=np.float32)
    center = mean.numpy()

    _share_out(
        len(gradient),
        lambda share, first, last: _sums(
            gradient[first:last], won[first:last], center, inverse, scale, shift, shares[share]
        ),
    )
    return torch.from_numpy(shares.sum(axis=0, dtype=np.float64).astype(np.float32))


def backward(
    x: Tensor,
    dy: Tensor,
    mean: Tensor,
    square: Tensor,
    weight: Tensor,
    bias: Tensor,
    both: Tensor,
    total: int,
    eps: float,
) -> Tensor:
    """The gradient of the input."""
    inverse, scale, shift = _affine(mean, square, weight, bias, total, eps)
    mean_dy, mean_product = both.numpy() / np.float32(total)
    # dx = scale * (g - mean_dy - normalised * mean_product), as an affine map of x.
    slope = scale * mean_product * inverse
    offset = slope * mean.numpy() - scale * mean_dy
    dx = torch.empty_like(x, memory_format=torch.channels_last)
    source, gradient, result = _array(x), _array(dy), _array(dx)

    _share_out(
        len(source),
        lambda _, first, last: _pool_backward(
            source[first:last], gradient[first:last], scale, shift, slope, offset, result[first:last]
        ),
    )
    return dx


def _affine(
    mean: Tensor, square: Tensor, weight: Tensor, bias: Tensor, total: int, eps: float
) -> tuple[Array, Array, Array]:
    """The inverse deviation, and the affine map that normalises: x * scale + shift."""
    inverse = (square / total + eps).rsqrt()
    scale = weight.detach() * inverse
    return inverse.numpy(), scale.numpy(), (bias.detach() - mean * scale).numpy()


def _array(images: Tensor) -> Array:
    """Images as an array [n, h, w, c] on the same memory."""
    array: Array = images.detach().permute(0, 2, 3, 1).numpy()
    return array


def _share_out(number: int, work: Callable[[int, int, int], None]) -> Any:
    """Call `work` with each share and its bounds, on as many threads as PyTorch uses; give the bounds."""
    bounds = np.arange(_SHARES + 1) * number // _SHARES
    tasks = [(share, int(bounds[share]), int(bounds[share + 1])) for share in range(_SHARES)]
    threads = torch.get_num_threads()
    if threads == 1 or number < 2 * _SHARES:
        for task in tasks:
            work(*task)
    else:
        for _ in _pool(threads, os.getpid()).map(lambda task: work(*task), tasks):
            pass
    return bounds


@functools.cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process: those of its parent do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix="srwm-vision")


@_compiled
def _statistics(pixels, mean, square):  # type: ignore[no-untyped-def]
    rows, channels = pixels.shape
    tile_mean = np.empty(channels, dtype=np.float32)
    tile_square = np.empty(channels, dtype=np.float32)
    for first in range(0, rows, _TILE):
        last = min(first + _TILE, rows)
        number = np.float32(last - first)
        tile_mean[:] = 0
        for row in range(first, last):
            for c in range(channels):
                tile_mean[c] += pixels[row, c]
        for c in range(channels):
            tile_mean[c] /= number
            tile_square[c] = 0
        for row in range(first, last):
            for c in range(channels):
                away = pixels[row, c] - tile_mean[c]
                tile_square[c] += away * away
        share = number / np.float32(last)
        for c in range(channels):
            delta = tile_mean[c] - mean[c]
            mean[c] += delta * share
            square[c] += tile_square[c] + delta * delta * np.float32(first) * share


@_compiled
def _pool_forward(x, scale, shift, y, winner):  # type: ignore[no-untyped-def]
    images, height, width, channels = y.shape
    for n in range(images):
        for i in range(height):
            for j in range(width):
                for c in range(channels):
                    best_x = x[n, 2 * i, 2 * j, c]
                    best = best_x * scale[c] + shift[c]
                    other = x[n, 2 * i, 2 * j + 1, c]
                    value = other * scale[c] + shift[c]
                    best_x, best = (other, value) if value > best else (best_x, best)
                    other = x[n, 2 * i + 1, 2 * j, c]
                    value = other * scale[c] + shift[c]
                    best_x, best = (other, value) if value > best else (best_x, best)
                    other = x[n, 2 * i + 1, 2 * j + 1, c]
                    value = other * scale[c] + shift[c]
                    best_x, best = (other, value) if value > best else (best_x, best)
                    # A NaN must stay one, so that it stops the run.
                    y[n, i, j, c] = np.float32(0) if best < 0 else best
                    winner[n, i, j, c] = best_x


@_compiled
def _sums(dy, winner, mean, inverse, scale, shift, both):  # type: ignore[no-untyped-def]
    rows, channels = dy.shape
    for row in range(rows):
        for c in range(channels):
            won = winner[row, c]
            gradient = dy[row, c] if won * scale[c] + shift[c] > 0 else np.float32(0)
            both[0, c] += gradient
            both[1, c] += gradient * ((won - mean[c]) * inverse[c])


@_compiled
def _pool_backward(x, dy, scale, shift, slope, offset, dx):  # type: ignore[no-untyped-def]
    images, height, width, channels = x.shape
    zero = np.float32(0)
    for n in range(images):
        for i in range(height // 2):
            for j in range(width // 2):
                for c in range(channels):
                    x_0 = x[n, 2 * i, 2 * j, c]
                    x_1 = x[n, 2 * i, 2 * j + 1, c]
                    x_2 = x[n, 2 * i + 1, 2 * j, c]
                    x_3 = x[n, 2 * i + 1, 2 * j + 1, c]
                    best, at = x_0 * scale[c] + shift[c], 0
                    value = x_1 * scale[c] + shift[c]
                    best, at = (value, 1) if value > best else (best, at)
                    value = x_2 * scale[c] + shift[c]
                    best, at = (value, 2) if value > best else (best, at)
                    value = x_3 * scale[c] + shift[c]
                    best, at = (value, 3) if value > best else (best, at)
                    g = dy[n, i, j, c] * scale[c] if best > 0 else zero
                    dx[n, 2 * i, 2 * j, c] = (g if at == 0 else zero) - x_0 * slope[c] + offset[c]
                    dx[n, 2 * i, 2 * j + 1, c] = (g if at == 1 else zero) - x_1 * slope[c] + offset[c]
                    dx[n, 2 * i + 1, 2 * j, c] = (g if at == 2 else zero) - x_2 * slope[c] + offset[c]
                    dx[n, 2 * i + 1, 2 * j + 1, c] = (g if at == 3 else zero) - x_3 * slope[c] + offset[c]
        # An odd last row or column took part in the statistics alone.
        if height % 2:
            for j in range(width):
                for c in range(channels):
                    dx[n, height - 1, j, c] = offset[c] - x[n, height - 1, j, c] * slope[c]
        if width % 2:
            for i in range(height):
                for c in range(channels):
                    dx[n, i, width - 1, c] = offset[c] - x[n, i, width - 1, c] * slope[c]
