"""GIF files, written frame by frame: Pillow's own writer keeps a whole animation in memory until its end.

Each frame is what Pillow makes of one picture, put into a longer file (GIF89a specification, W3C): a table of colours
of its own, and transparent where nothing has moved since the frame before.
"""

import io
from pathlib import Path
from typing import BinaryIO

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from srwm.runs.atomic import failures_as_sentences

SCALE = 2 / 3
"""Pictures are made smaller: a GIF is large, and for a glance."""

_COLOURS = 255
"""In a frame; one more number means transparent."""
_TRANSPARENT = 255
_FOREVER = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
_END = b"\x3b"


class GifWriter:
    """Adds frames to a GIF that plays again and again."""

    def __init__(self, path: Path, name: Path, fps: int) -> None:
        self._path, self._name, self._fps = path, name, fps
        self._file: BinaryIO | None = None
        self._before: UInt8[np.ndarray, "h w 3"] | None = None
        self._frames = 0

    def add(self, picture: UInt8[np.ndarray, "h w 3"], times: int) -> None:
        """Add a picture.

        Raises:
            RunError: if it cannot be written.
        """
        size = (round(picture.shape[1] * SCALE), round(picture.shape[0] * SCALE))
        now = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.HAMMING))
        frame = _frame(now, self._before, self._delay(times))
        with failures_as_sentences(self._name):
            if self._file is None:
                self._file = self._path.open("wb")
                self._file.write(b"GIF89a" + _words(*size) + b"\x70\x00\x00" + _FOREVER)
            self._file.write(frame)
        self._before = now
        self._frames += times

    def close(self, *, broken: bool) -> None:
        """End the file.

        Raises:
            RunError: if it cannot be written.
        """
        if self._file is not None:
            with failures_as_sentences(self._name), self._file as file:
                if not broken:
                    file.write(_END)

    def _delay(self, times: int) -> int:
        """Hundredths of a second until the next frame, rounded such that the whole has the right length."""
        begin, end = (round(100 * frames / self._fps) for frames in (self._frames, self._frames + times))
        return end - begin


def _frame(now: UInt8[np.ndarray, "h w 3"], before: UInt8[np.ndarray, "h w 3"] | None, delay: int) -> bytes:
    """The bytes of a frame."""
    # Of Pillow's methods this one is by far the fastest, and it keeps the colours of thin lines.
    image = Image.fromarray(now).quantize(_COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    table = bytes(image.getpalette() or ()).ljust(3 * 256, b"\0")
    numbers = np.array(image)
    if before is not None:
        numbers[(now == before).all(axis=-1)] = _TRANSPARENT
    indexed = Image.fromarray(numbers)
    indexed.putpalette(table)
    alone = io.BytesIO()
    indexed.save(alone, "GIF", optimize=False, interlace=False)
    data = alone.getvalue()
    # A file's head of 13 bytes, its table of colours, a frame's head of 10 bytes, the pixels, an end of 1 byte.
    bits = data[10] & 7
    start = 13 + 3 * (2 << bits)
    assert data[10] & 0x80, "Pillow wrote no table of colours"
    assert data[start] == 0x2C, "Pillow wrote more than the picture"
    head, pixels = data[start : start + 9], data[start + 10 : -1]
    # Bits: the frame stays where it is not painted over, and one colour is transparent if there was a frame before.
    control = b"\x21\xf9\x04" + bytes([0x04 | (before is not None)]) + _words(delay) + bytes([_TRANSPARENT, 0])
    return control + head + bytes([0x80 | bits]) + data[13:start] + pixels


def _words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(2, "little") for number in numbers)
