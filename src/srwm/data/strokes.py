"""Strokes: a built-in set of hand-written characters, from alphabets that do not exist.

A class is a stroke program (`_strokes_program`), an image is one drawing of it: the program with jittered lengths,
turns and joints, then bent, slanted, stretched and moved as hands do, by a pen of its own width.

It is about as hard as Omniglot: for the nearest neighbour by pixels (Euclidean, 28 x 28, 20,000 episodes, test classes)
5-way 1-shot accuracy is 43% here and 41% there.
"""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float64, UInt8, UInt64

from srwm.errors import InputError

from ._strokes_program import PARTS, Programs, assemble, box, compose, trace_strokes
from ._strokes_random import child_keys, first_key, normal
from .image_set import ImageSet
from .strokes_pen import draw_paths

Split = Literal["train", "validation", "test"]

STROKES_CLASSES: dict[str, int] = {"train": 1000, "validation": 150, "test": 400}
"""How many classes a split has where no other number is asked for."""
_IMAGE_SIZES = (8, 1024)
"""The smallest and the largest image; in fewer pixels no character can be read."""
_CHUNK_PIXELS = 1 << 19
"""About how many pixels are drawn together; bounds the memory in use."""
_STRIDE = 1 << 32
"""Class c of split number s is program number s * stride + c, so no program is in two splits."""
_DRAWINGS = 1 << 32
"""Drawing i of a class is child number 2**32 + i of its key; the numbers below are the attempts at its program."""

# How much drawings of one character differ: standard deviations, lengths in image sides and angles in turns.
_HEADING = 0.015
_CORNER = 0.02
_LENGTH = 0.13
"""Of the length of a part, in lengths; of a whole stroke it is half as much."""
_TURN = 0.02
_TURN_SHARE = 0.1
"""Added to the former for each turn that a part makes."""
_JOINT = 0.03
_AIM = 0.7
"""The share of the error at the end of a stroke that the eye corrects: rings close nearly."""
_BEND = 0.03
_SIZE = 0.11
_STRETCH = 0.12
_SLANT = 0.15
_TILT = 0.09
_SHIFT = 0.04
_PEN = 0.029
"""The mean radius of a pen."""
_PEN_SHARE = 0.14
_PRESS_SHARE = 0.08
"""Of the radius from stroke to stroke."""
_THINNEST_PEN = 0.016
_BORDER_PIXELS = 1.0
"""The border that stays dark."""


def draw_strokes(
    split: Split, *, seed: int = 0, image_size: int = 28, classes: int | None = None, per_class: int = 20
) -> ImageSet:
    """Draw a split of Strokes.

    An image depends on `seed`, the split, its class and its number within the class alone, and is the same on every
    machine: asking for fewer classes or images gives the first of them. No program is in two splits. Ink is bright
    (255) on dark (0).

    Args:
        split: "train", "validation" or "test".
        seed: which alphabets; other seeds give other characters.
        image_size: pixels a side, from 8 to 1,024.
        classes: how many; None is 1,000 for training, 150 for validation and 400 for the test.
        per_class: images of each class.

    Returns:
        The images, [classes * per_class, 1, image_size, image_size], class by class.

    Raises:
        InputError: if there is no such split, or a number is out of range.

    Example:
        >>> draw_strokes("train", classes=3, per_class=2).images.shape
        torch.Size([6, 1, 28, 28])
    """
    if split not in STROKES_CLASSES:
        raise InputError(f"split={split!r}; expected one of {', '.join(map(repr, STROKES_CLASSES))}")
    classes = STROKES_CLASSES[split] if classes is None else classes
    for name, value, least, most in (
        ("seed", seed, 0, (1 << 64) - 1),
        ("image_size", image_size, *_IMAGE_SIZES),
        ("classes", classes, 1, _STRIDE - 1),
        ("per_class", per_class, 1, _STRIDE - 1),
    ):
        if not least <= value <= most:
            raise InputError(f"{name}={value}; Strokes wants a number from {least} to {most}")

    keys = class_keys(split, seed, classes)
    programs = compose(keys)
    class_of = np.repeat(np.arange(classes), per_class)
    number = np.tile(np.arange(_DRAWINGS, _DRAWINGS + per_class, dtype=np.uint64), classes)
    images = np.empty((len(class_of), 1, image_size, image_size), dtype=np.uint8)
    chunk = max(1, _CHUNK_PIXELS // image_size**2)
    for i in range(0, len(images), chunk):
        part = slice(i, i + chunk)
        drawing_keys = child_keys(keys[class_of[part]], number[part])
        images[part, 0] = _draw(programs.rows(class_of[part]), drawing_keys, image_size)
    names = [f"{split}-{c:04d}" for c in range(classes)]
    return ImageSet.of_counts(f"strokes/{split}", torch.from_numpy(images), [per_class] * classes, names)


def class_keys(split: Split, seed: int, classes: int) -> UInt64[np.ndarray, "{classes}"]:
    """The keys of the first programs of a split; all keys of a seed, over all splits, are different."""
    first = get_args(Split).index(split) * _STRIDE
    return child_keys(first_key(seed), np.arange(first, first + classes, dtype=np.uint64))


def _draw(programs: Programs, keys: UInt64[np.ndarray, "n"], image_size: int) -> UInt8[np.ndarray, "n h w"]:
    """Draw each program once, by the hand that its key stands for."""
    stroke_keys, page_keys, pen_keys = (child_keys(keys, np.array([i], dtype=np.uint64)) for i in range(3))
    points = _write(programs, stroke_keys, steps=max(8, image_size // 4))
    points = _deform(points, page_keys)
    press = normal(pen_keys, 1 + points.shape[1])
    radius = _PEN * (1 + _PEN_SHARE * press[:, :1]) * (1 + _PRESS_SHARE * press[:, 1:])
    radius = np.maximum(radius, _THINNEST_PEN)
    points = _keep_inside(programs, points, radius.max(axis=1) + _BORDER_PIXELS / image_size)
    return draw_paths(points.astype(np.float32), radius.astype(np.float32), programs.drawn(), image_size)


def _write(programs: Programs, keys: UInt64[np.ndarray, "n"], steps: int) -> Float64[np.ndarray, "n s points 2"]:
    """The strokes of each program as a hand writes them, around the middle of the image."""
    n, strokes = programs.kind.shape
    noise = normal(child_keys(keys[:, None], np.arange(strokes, dtype=np.uint64)), 4 + 3 * PARTS)
    corner, length, turn = np.moveaxis(noise[:, :, 4:].reshape(n, strokes, 3, PARTS), 2, 0)
    written = replace(
        programs,
        heading=programs.heading + _HEADING * noise[:, :, 0],
        offset=programs.offset + _JOINT * noise[:, :, 1:3],
        # Where a stroke has no corner, its parts go over into each other smoothly.
        corner=np.where(programs.corner == 0, 0.0, programs.corner + _CORNER * corner),
        length=programs.length * (1 + _LENGTH * length) * (1 + _LENGTH / 2 * noise[:, :, 3:4]),
        turn=programs.turn + (_TURN + _TURN_SHARE * np.abs(programs.turn)) * turn,
    )
    paths = trace_strokes(written, steps)
    error = paths[:, :, -1] - trace_strokes(programs, steps)[:, :, -1]
    share = _AIM * np.arange(paths.shape[2]) / (paths.shape[2] - 1)
    return assemble(written, paths - share[:, None] * error[:, :, None])


def _deform(
    points: Float64[np.ndarray, "n s points 2"], keys: UInt64[np.ndarray, "n"]
) -> Float64[np.ndarray, "n s points 2"]:
    """Bend, stretch, slant, tilt and move whole characters."""
    noise = np.moveaxis(normal(keys, 13), -1, 0)[..., None, None]
    bend, size, stretch_x, slant, stretch_y, tilt, *shift = (noise[:6], *noise[6:])
    x, y = points[..., 0], points[..., 1]
    # Quadratic in coordinates that reach from -1 to 1.
    xx, xy, yy = 4 * x * x, 4 * x * y, 4 * y * y
    x = x + _BEND * (bend[0] * xx + bend[1] * xy + bend[2] * yy)
    y = y + _BEND * (bend[3] * xx + bend[4] * xy + bend[5] * yy)
    scale = 1 + _SIZE * size
    slanted_x = scale * ((1 + _STRETCH * stretch_x) * x + _SLANT * slant * y)
    tilted_y = scale * ((1 + _STRETCH * stretch_y) * y + _TILT * tilt * x)
    return np.stack([slanted_x + _SHIFT * shift[0], tilted_y + _SHIFT * shift[1]], axis=-1)


def _keep_inside(
    programs: Programs, points: Float64[np.ndarray, "n s points 2"], border: Float64[np.ndarray, "n"]
) -> Float64[np.ndarray, "n s points 2"]:
    """Move what lies over the border back, shrink what is too large, and put the origin into the image's corner."""
    low, high = box(programs, points)
    room = 1 - 2 * border
    shrink = np.minimum(1.0, room / np.maximum((high - low).max(axis=1), 1e-9))
    middle, half = (low + high) / 2, shrink[:, None] * (high - low) / 2
    free = np.maximum(room[:, None] / 2 - half, 0.0)
    goal = np.clip(middle, -free, free) + 0.5
    inside: Float64[np.ndarray, "n s points 2"] = (points - middle[:, None, None]) * shrink[:, None, None, None]
    inside += goal[:, None, None]
    return inside
