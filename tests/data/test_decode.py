import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from srwm.data.decode import (
    MAX_PIXELS,
    cut_tiles,
    decode_image,
    encode_image,
    join_tiles,
    quiet_pillow,
    resize_images,
)
from srwm.errors import InputError

from .images import encoded, random_images


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("size", "target"), [(105, 28), (64, 84), (33, 32), (28, 28), (5, 1)])
def test_resizing_many_equals_pillow_on_each(channels, size, target):
    images = random_images(7, channels, size)
    for image, resized in zip(images, resize_images(images, target), strict=True):
        for plane, result in zip(image, resized, strict=True):
            wanted = Image.fromarray(plane).resize((target, target), Image.Resampling.BILINEAR)
            assert np.array_equal(result, np.asarray(wanted))


@pytest.mark.parametrize("shape", [(12, 5), (5, 12)])
def test_resizing_stretches_what_is_not_square_along_rows_first(shape):
    image = random_images(1, 1, 12)[:, :, : shape[0], : shape[1]]
    rows = Image.fromarray(image[0, 0]).resize((8, shape[0]), Image.Resampling.BILINEAR)
    assert np.array_equal(resize_images(image, 8)[0, 0], np.asarray(rows.resize((8, 8), Image.Resampling.BILINEAR)))


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_encoded_comes_back_bit_for_bit(channels):
    image = random_images(1, channels, 9)[0]
    assert np.array_equal(decode_image(encode_image(image), channels, "x"), image)


def test_black_and_white_takes_one_bit_a_pixel():
    image = np.where(random_images(1, 1, 64)[0] > 127, 255, 0).astype(np.uint8)
    data = encode_image(image)
    assert np.array_equal(decode_image(data, 1, "x"), image)
    assert Image.open(io.BytesIO(data)).mode == "1"


def test_tiles_are_cut_row_by_row_and_joined_again():
    images = random_images(6, 3, 4)
    sheet = join_tiles(images, (2, 3))
    assert sheet.shape == (3, 8, 12)
    assert np.array_equal(sheet[:, :4, 4:8], images[1])
    assert np.array_equal(cut_tiles(sheet, (2, 3), "x"), images)


def test_a_sheet_that_tiles_do_not_divide_is_refused():
    with pytest.raises(InputError, match="x is 8 x 8, which 3 columns and 2 rows do not divide"):
        cut_tiles(random_images(1, 1, 8)[0], (2, 3), "x")


def test_grey_becomes_colours_and_colours_become_grey():
    grey = random_images(1, 1, 4)[0]
    assert np.array_equal(decode_image(encoded(grey), 3, "x"), grey.repeat(3, axis=0))
    assert decode_image(encoded(random_images(1, 3, 4)[0]), 1, "x").shape == (1, 4, 4)


def test_transparent_parts_are_white():
    buffer = io.BytesIO()
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(buffer, "PNG")
    assert (decode_image(buffer.getvalue(), 3, "x") == 255).all()


def test_a_photograph_taken_sideways_is_turned_upright():
    exif = Image.Exif()
    exif[0x0112] = 6  # Turned by 90 degrees.
    buffer = io.BytesIO()
    Image.new("RGB", (4, 2)).save(buffer, "JPEG", exif=exif)
    assert decode_image(buffer.getvalue(), 3, "x").shape == (3, 4, 2)


def test_an_image_of_too_many_pixels_is_refused_before_it_is_unpacked(monkeypatch):
    side = 8001
    assert side * side > MAX_PIXELS
    buffer = io.BytesIO()
    Image.new("1", (side, side)).save(buffer, "PNG")
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match="x is 8001 x 8001"):
        decode_image(buffer.getvalue(), 1, "x")


@given(
    data=st.binary(max_size=200),
    head=st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"RIFF", b"GIF89a"]),
)
def test_random_bytes_are_no_image(data, head):
    with quiet_pillow(), pytest.raises(InputError, match="image 3 of class 'a' is not an image"):
        decode_image(head + data, 3, "image 3 of class 'a'")


@given(
    cut=st.integers(0, 10_000),
    place=st.integers(0, 10_000),
    byte=st.integers(0, 255),
    kind=st.sampled_from(["PNG", "JPEG", "WEBP", "GIF", "BMP"]),
)
def test_a_damaged_image_is_read_or_refused_by_name(cut, place, byte, kind):
    data = bytearray(encoded(random_images(1, 3, 16)[0], kind))
    data[place % len(data)] = byte
    with quiet_pillow():
        try:
            decoded = decode_image(bytes(data[: cut % len(data)]), 3, "that image")
        except InputError as error:
            assert str(error).startswith("that image")  # noqa: PT017
        else:
            assert decoded.dtype == np.uint8
