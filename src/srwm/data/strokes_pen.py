"""The pen of Strokes: turns paths into grey images."""

import numpy as np
from jaxtyping import Bool, Float32, Int64, UInt8

_CHUNK_PIXELS = 1 << 17
"""How many pixels are looked at together: few enough for a processor's cache."""


def draw_paths(
    points: Float32[np.ndarray, "n s points 2"],
    radius: Float32[np.ndarray, "n s"],
    drawn: Bool[np.ndarray, "n s"],
    image_size: int,
) -> UInt8[np.ndarray, "n {image_size} {image_size}"]:
    """Draw paths with a round pen, bright on dark and with smooth edges.

    Every piece of a path is drawn by itself, in a small window around its middle.

    Args:
        points: the corners of each path, (x, y) in image sides; all within the image.
        radius: of the pen, in image sides.
        drawn: which paths are drawn.
        image_size: pixels a side.

    Returns:
        The images.
    """
    image, path = np.nonzero(drawn)
    # The origin is the middle of pixel (0, 0).
    corners = points[image, path] * np.float32(image_size) - np.float32(0.5)
    start = corners[:, :-1].reshape(-1, 2)
    along = corners[:, 1:].reshape(-1, 2) - start
    pieces = corners.shape[1] - 1
    # Ink is full up to half a pixel inside of the pen's edge, and none from half a pixel outside.
    reach = np.repeat(radius[image, path] * np.float32(image_size) + np.float32(0.5), pieces)
    image = np.repeat(image, pieces)

    # Pieces of like length share a size of window, so none is much larger than it must be.
    length = np.abs(along).max(axis=1)
    order = np.argsort(length, kind="stable")
    image, start, along, reach, length = image[order], start[order], along[order], reach[order], length[order]
    margin = _margin(length, reach)
    side = image_size + 2 * margin
    depth = np.zeros(len(points) * side * side, dtype=np.float32)
    chunk = max(1, _CHUNK_PIXELS // (2 * margin + 1) ** 2)
    for i in range(0, len(start), chunk):
        part = slice(i, i + chunk)
        half = _margin(length[part], reach[part])
        _draw_pieces(depth, image[part], start[part], along[part], reach[part], half, margin, side)
    inner = slice(margin, margin + image_size)
    ink = np.minimum(depth.reshape(-1, side, side)[:, inner, inner], np.float32(1))
    return (ink * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def _margin(length: Float32[np.ndarray, "m"], reach: Float32[np.ndarray, "m"]) -> int:
    """How many pixels around the one in their middle pieces may touch."""
    return int(np.ceil(length.max(initial=0.0) / 2 + reach.max(initial=0.0) + 0.5))


def _draw_pieces(
    depth: Float32[np.ndarray, "pixels"],
    image: Int64[np.ndarray, "m"],
    start: Float32[np.ndarray, "m 2"],
    along: Float32[np.ndarray, "m 2"],
    reach: Float32[np.ndarray, "m"],
    half: int,
    margin: int,
    side: int,
) -> None:
    """Raise `depth`, how far each pixel lies within the ink, for straight pieces from `start` to `start + along`.

    `depth` holds images of `side` pixels, their margin among them: there every window of 2 `half` + 1 lies within one.
    """
    corner = np.rint(start + along * np.float32(0.5)).astype(np.int64) - half
    step = np.arange(2 * half + 1)
    x = (corner[:, :1] + step).astype(np.float32) - start[:, :1]
    y = (corner[:, 1:] + step).astype(np.float32) - start[:, 1:]
    squared = along[:, 0] * along[:, 0] + along[:, 1] * along[:, 1]
    unit = along / np.maximum(squared, np.float32(1e-12))[:, None]
    # The share of the piece at which it comes nearest to a pixel.
    nearest = (y * unit[:, 1:])[:, :, None] + (x * unit[:, :1])[:, None, :]
    np.clip(nearest, 0, 1, out=nearest)
    dx = x[:, None, :] - nearest * along[:, 0, None, None]
    dy = y[:, :, None] - nearest * along[:, 1, None, None]
    dx *= dx
    dy *= dy
    dx += dy
    inside = reach[:, None, None] - np.sqrt(dx, out=dx)
    pixel = (corner[:, 1:] + margin + step) * side
    index = (image[:, None] * (side * side) + pixel)[:, :, None] + (corner[:, :1] + margin + step)[:, None, :]
    wet = inside > 0
    np.maximum.at(depth, index[wet], inside[wet])
