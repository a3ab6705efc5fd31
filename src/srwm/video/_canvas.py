"""A picture that is painted pixel by pixel, and written on at the end."""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""

_ARROW = 15
"""Side of the picture of an arrow."""
_FINER = 8
"""Arrows are drawn so many times larger, and then made small, so that their edges are smooth."""


@dataclass(frozen=True)
class Box:
    """A part of a picture, in pixels from its upper left corner."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """Where it ends."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """Where it ends."""
        return self.top + self.height


class Canvas:
    """A picture in the making."""

    def __init__(self, width: int, height: int, paper: Colour) -> None:
        self._pixels = np.empty((height, width, 3), np.uint8)
        self.paint(Box(0, 0, width, height), paper)
        self._masks: list[tuple[Colour, tuple[int, int], Image.Image]] = []

    def part(self, box: Box) -> UInt8[np.ndarray, "h w 3"]:
        """Give the pixels of a part, to be painted on."""
        return self._pixels[box.top : box.bottom, box.left : box.right]

    def paint(self, box: Box, colour: Colour) -> None:
        """Fill a part with one colour."""
        # Whole rows at a time: pixel by pixel numpy is slow.
        self.part(box)[:] = np.tile(np.array(colour, np.uint8), (box.width, 1))

    def write(self, x: int, base: int, text: str, size: int, colour: Colour, *, anchor: str = "ls") -> int:
        """Write on a base line, and say where a text that begins at x ends.

        The font is that of Pillow, which has Latin letters only. `anchor` is Pillow's: "ls" begins at x, "rs" ends
        there, "ms" has its middle there.
        """
        word = _word(text, size, anchor)
        self._masks.append((colour, (x + word.left, base + word.top), word.mask))
        return x + word.length

    def arrow(self, x: int, y: int, across: int, down: int, colour: Colour) -> None:
        """Draw an arrow with its middle at (x, y); `across` and `down` are -1, 0 or 1, and a dot if both are 0."""
        self._masks.append((colour, (x - _ARROW // 2, y - _ARROW // 2), _arrow(across, down)))

    def finish(self) -> UInt8[np.ndarray, "h w 3"]:
        """Write all that is to be written, above all that was painted."""
        image = Image.fromarray(self._pixels)
        for mask in self._masks:
            image.paste(*mask)
        return np.asarray(image)


class _Word(NamedTuple):
    """A word, white on black, and where it stands beside its anchor."""

    mask: Image.Image
    left: int
    top: int
    length: int


@functools.lru_cache(1024)
def _word(text: str, size: int, anchor: str) -> _Word:
    font = _font(size)
    left, top, right, bottom = font.getbbox(text, anchor=anchor)
    left, top = math.floor(left), math.floor(top)
    mask = Image.new("L", (math.ceil(right) - left, math.ceil(bottom) - top))
    ImageDraw.Draw(mask).text((-left, -top), text, 255, font, anchor)
    return _Word(mask, left, top, math.ceil(font.getlength(text)))


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


@functools.cache
def _arrow(across: int, down: int) -> Image.Image:
    """An arrow, white on black."""
    side = _ARROW * _FINER
    image = Image.new("L", (side, side))
    draw = ImageDraw.Draw(image)
    middle, half, width = side / 2, side * 0.38, round(side * 0.11)
    if (across, down) == (0, 0):
        draw.circle((middle, middle), side * 0.14, fill=255)
        return image.reduce(_FINER)
    length = (across**2 + down**2) ** 0.5
    x, y = across / length, down / length
    tip = (middle + x * half, middle + y * half)
    draw.line((middle - x * half, middle - y * half, *tip), fill=255, width=width)
    for turn in (-1, 1):
        # Back from the tip, at 45 degrees to either side.
        back = (-x - turn * y, -y + turn * x)
        draw.line((*tip, tip[0] + back[0] * half * 0.6, tip[1] + back[1] * half * 0.6), fill=255, width=width)
    draw.circle(tip, width / 2, fill=255)
    return image.reduce(_FINER)
