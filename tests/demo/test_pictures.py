"""Pictures that are small as files and large as images."""

import io
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from PIL import Image

from srwm.demo import drawing
from srwm.demo.drawing import LOOKS, MAX_PIXELS, MAX_SIDE, read_picture
from srwm.errors import InputError

from .small import SHAPE, SIZE

LOOK = LOOKS["strokes"]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of_size(width, height):
    """The head of a PNG file of any size, and next to nothing after it."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")


def bmp_of_size(width, height):
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 2835, 2835, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + head


def gif_of_size(width, height):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b"\x2c" + bytes(9) + b"\x3b"


def test_a_picture_of_one_column_of_millions_of_pixels_is_refused_before_it_is_unpacked(monkeypatch):
    monkeypatch.setattr(drawing, "decode_image", lambda *_: pytest.fail("it was unpacked"))
    for width, height in ((1, 64_000_000), (64_000_000, 1)):
        with pytest.raises(
            InputError, match=rf"^the picture is {width} x {height} pixels; expected at most 10000 a side"
        ):
            read_picture(png_of_size(width, height), LOOK, SHAPE)


@pytest.mark.parametrize("make", [png_of_size, bmp_of_size, gif_of_size])
@pytest.mark.parametrize(
    ("width", "height"), [(MAX_SIDE + 1, 1), (1, MAX_SIDE + 1), (MAX_SIDE, MAX_PIXELS // MAX_SIDE + 1)]
)
def test_every_kind_of_file_is_bounded_by_its_head(monkeypatch, make, width, height):
    monkeypatch.setattr(drawing, "decode_image", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match=f"the picture is {width} x {height} pixels; .* make it smaller first"):
        read_picture(make(width, height), LOOK, SHAPE)


@pytest.mark.parametrize("kind", ["TIFF", "PPM", "ICO", "TGA", "SGI", "DDS", "PCX"])
def test_no_other_format_reaches_a_decoder_though_pillow_has_one(kind):
    file = io.BytesIO()
    Image.new("RGB", (16, 16), "white").save(file, kind)
    with pytest.raises(
        InputError, match="the picture is not an image that can be read; expected PNG, JPEG, WEBP, BMP, GIF"
    ):
        read_picture(file.getvalue(), LOOK, SHAPE)


@pytest.mark.parametrize(("width", "height"), [(1, MAX_SIDE), (MAX_SIDE, 1)])
def test_a_picture_as_long_as_may_be_is_read(width, height):
    file = io.BytesIO()
    Image.new("L", (width, height), 200).save(file, "PNG")
    pixels, inverted = read_picture(file.getvalue(), LOOK, SHAPE)
    assert inverted
    assert np.array_equal(pixels, np.full((1, SIZE, SIZE), 55, np.uint8))


def test_the_ink_is_found_along_the_border_without_a_copy_of_the_picture():
    image = np.full((3, 3000, 3000), 255, np.uint8)
    image[:, 1:-1, 1:-1] = 0
    tracemalloc.start()
    try:
        assert drawing._has_light_border(image)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
