"""From what a person draws, or takes from disk, to an image as those that a model was trained on."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64, UInt8
from numpy import ndarray
from PIL import Image

from srwm.data.decode import FORMATS, decode_image, quiet_pillow, resize_images
from srwm.data.strokes_pen import draw_paths
from srwm.errors import InputError

Point = Sequence[float]
"""x to the right and y down, both from 0 to 1."""
Ink = Literal["auto", "dark", "bright"]
"""What the ink of a picture is: to be found out, dark on light paper, or bright on dark."""

SIZES = (0.3, 0.94)
"""Longer side of a character, in image sides: 99 in 100 drawings of Omniglot and of Strokes lie within."""
SHIFT = 0.16
"""How far the middle of a character may lie from that of the image, along each side; again 99 in 100."""
MOST_GROWTH = 2.0
"""A drawing is not enlarged by more: a dot stays a dot."""
MAX_SIDE = 10_000
"""Pixels of the longer side of a picture: one of a single column would grow by much when it is made square."""
MAX_PIXELS = 25_000_000
"""Pixels of a picture: about half a gigabyte while it is read."""


@dataclass(frozen=True)
class Look:
    """How the images of a source look, so that drawings can be made to look the same."""

    pen: float
    """Radius of the pen, in image sides."""
    raster: int | None = None
    """Pixels a side in which it is drawn, in black and white, before it is resized; None for at once and smooth."""
    bright_ink: bool = True
    """Whether all its images show bright ink on dark, so that pictures of dark ink must be inverted."""


_STROKES = Look(pen=0.029)
# Its lines are 5 pixels wide, whatever their direction, in drawings of 105 x 105.
_OMNIGLOT = Look(pen=2.5 / 105, raster=105)
LOOKS = {"strokes": _STROKES, "omniglot": _OMNIGLOT, "omniglot-original": _OMNIGLOT}
"""The looks of sources of characters."""

# What Pillow says of bytes that it cannot read means nothing to whoever chose a file.
_UNREADABLE = f"the picture is not an image that can be read; expected {', '.join(FORMATS)}"


def look_of(source: str) -> Look:
    """Say how the images of a source look; of an unknown one, no more is known than that it has images."""
    return LOOKS.get(source, Look(pen=_STROKES.pen, bright_ink=False))


def draw_image(
    strokes: Sequence[Sequence[Point]], look: Look, shape: tuple[int, int, int]
) -> UInt8[ndarray, "c size size"]:
    """Draw strokes as the training images were drawn: pen, size, place, resizing and all.

    A drawing whose size and place are as those of the training images keeps both; others are brought to the nearest
    that are.

    Args:
        strokes: at least one, each of at least one point.
        look: of the training images.
        shape: channels, height and width (the same) of the image.

    Returns:
        Bright ink (255) on dark (0).
    """
    channels, size, _ = shape
    starts = np.concatenate([np.array(stroke, np.float64)[: max(1, len(stroke) - 1)] for stroke in strokes])
    ends = np.concatenate([np.array(stroke, np.float64)[min(1, len(stroke) - 1) :] for stroke in strokes])
    pieces = place(np.stack([starts, ends], axis=1), look.pen).astype(np.float32)[None]
    radius = np.full(pieces.shape[:2], look.pen, np.float32)
    image = draw_paths(pieces, radius, np.ones(pieces.shape[:2], bool), look.raster or size)
    if look.raster is not None:
        image = np.where(image > 127, np.uint8(255), np.uint8(0))
    return np.repeat(resize_images(image[None], size)[0], channels, axis=0)


def place(points: Float64[ndarray, "n 2 2"], pen: float) -> Float64[ndarray, "n 2 2"]:
    """Bring a drawing to the nearest size and place that training images have."""
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    extent = float((high - low).max())
    smallest, largest = (side - 2 * pen for side in SIZES)
    scale = min(np.clip(extent, smallest, largest) / extent, MOST_GROWTH) if extent > 0 else 1.0
    reach = scale * (high - low) / 2 + pen
    middle = (low + high) / 2
    goal = np.clip(middle, np.maximum(0.5 - SHIFT, reach), np.minimum(0.5 + SHIFT, 1 - reach))
    placed: Float64[ndarray, "n 2 2"] = np.clip((points - middle) * scale + goal, 0.0, 1.0)
    return placed


def read_picture(
    data: bytes, look: Look, shape: tuple[int, int, int], ink: Ink = "auto"
) -> tuple[UInt8[ndarray, "c size size"], bool]:
    """Read an image file as `srwm.data` reads those of a source.

    Args:
        data: the file's bytes.
        look: of the training images.
        shape: channels, height and width (the same) of the image; others than square ones are stretched.
        ink: of the picture; "auto" takes the ink to be dark if most of the picture's border is light.

    Returns:
        The image, and whether light and dark were exchanged.

    Raises:
        InputError: the bytes are not a sound image file, or hold too many pixels.
    """
    channels, size, _ = shape
    with quiet_pillow():
        _check_size(data)
        image = _decode(data, channels)
        inverted = ink == "dark" or (ink == "auto" and look.bright_ink and _has_light_border(image))
        # Before resizing, as for a source whose images are inverted: afterwards, half of a grey value would round off
        # the other way.
        resized = resize_images((255 - image if inverted else image)[None], size)[0]
    return np.array(resized), inverted


def _decode(data: bytes, channels: int) -> UInt8[ndarray, "c h w"]:
    try:
        return decode_image(data, channels, "the picture")
    except InputError as error:
        if error.__cause__ is None:
            raise
        raise InputError(_UNREADABLE) from error


def _check_size(data: bytes) -> None:
    """Refuse a picture that is too large by what its head says, before any of it is unpacked."""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            width, height = image.size
    # Pillow's decoders answer broken bytes with nearly every kind of error there is; all of them mean the same.
    except Exception as error:
        raise InputError(_UNREADABLE) from error
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise InputError(
            f"the picture is {width} x {height} pixels; expected at most {MAX_SIDE} a side and {MAX_PIXELS} in all: "
            "make it smaller first"
        )


def _has_light_border(image: UInt8[ndarray, "c h w"]) -> bool:
    border = np.concatenate([image[:, 0], image[:, -1], image[:, :, 0], image[:, :, -1]], axis=1)
    return bool(np.median(border.mean(axis=0)) > 127)
