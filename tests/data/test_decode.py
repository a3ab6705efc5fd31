import io
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from srwm.data._pixel_budget import PixelBudget
from srwm.data.decode import (
    MAX_PIXELS,
    MAX_SIDE,
    _as_array,
    cut_tiles,
    decode_image,
    decoded,
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


def test_a_strip_that_resizing_would_stretch_to_gigabytes_is_refused():
    with pytest.raises(InputError, match=f"x is 1 x {MAX_SIDE + 1}; at most"):
        decode_image(encoded(np.zeros((1, MAX_SIDE + 1, 1), np.uint8)), 1, "x")


def test_an_image_whose_header_claims_billions_of_pixels_is_refused():
    data = bytearray(encoded(random_images(1, 3, 4)[0], "BMP"))
    data[18:26] = (40_000).to_bytes(4, "little") * 2
    with pytest.raises(InputError, match=f"x is too large; at most {MAX_PIXELS} pixels are read"):
        decode_image(bytes(data), 3, "x")


@pytest.mark.parametrize("channels", [1, 3])
def test_grey_of_16_bits_is_scaled_to_8(channels):
    ramp = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    buffer = io.BytesIO()
    Image.fromarray(ramp).save(buffer, "PNG")
    expected = np.repeat((ramp >> 8)[None], channels, axis=0)
    assert np.array_equal(decode_image(buffer.getvalue(), channels, "x"), expected)


@pytest.mark.parametrize("order", [">u2", "<u2"])
def test_grey_of_16_bits_in_either_order_of_bytes_is_scaled_to_8(order):
    ramp = np.arange(2**16).astype(order).reshape(256, 256)
    image = Image.frombytes("I;16B" if order == ">u2" else "I;16", (256, 256), ramp.tobytes())
    assert np.array_equal(_as_array(image, 1, "x")[0], ramp >> 8)


def test_the_transparent_grey_of_16_bits_is_white():
    buffer = io.BytesIO()
    Image.fromarray(np.array([[1000, 1001]], np.uint16)).save(buffer, "PNG", transparency=1000)
    assert decode_image(buffer.getvalue(), 1, "x").tolist() == [[[255, 3]]]


@pytest.mark.parametrize(
    ("mode", "colour", "rgb"),
    [
        ("1", 255, (255, 255, 255)),
        ("LA", (9, 255), (9, 9, 9)),
        ("LA", (9, 0), (255, 255, 255)),
        ("PA", (1, 0), (255, 255, 255)),
        ("RGBA", (10, 20, 30, 255), (10, 20, 30)),
        ("CMYK", (0, 255, 255, 0), (255, 0, 0)),
        ("YCbCr", (255, 128, 128), (255, 255, 255)),
    ],
)
def test_other_kinds_of_pixels_become_colours(mode, colour, rgb):
    assert _as_array(Image.new(mode, (2, 2), colour), 3, "x")[:, 0, 0].tolist() == list(rgb)


def test_a_palette_with_a_transparent_entry_is_laid_on_white():
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", transparency=1)
    assert decode_image(buffer.getvalue(), 3, "x")[:, 0].T.tolist() == [[10, 20, 30], [255, 255, 255]]


@pytest.mark.parametrize("mode", ["I", "F", "LAB", "HSV"])
def test_pixels_that_pillow_would_distort_are_refused(mode):
    with pytest.raises(InputError, match=f"x has pixels of mode '{mode}'; expected grey, palette or colour"):
        _as_array(Image.new(mode, (2, 2)), 3, "x")


def test_threads_hold_no_more_pixels_than_the_budget(monkeypatch):
    monkeypatch.setattr("srwm.data.decode._BUDGET", PixelBudget(250))
    data, lock, alive, most = encoded(random_images(1, 3, 10)[0]), threading.Lock(), 0, 0
    two = threading.Barrier(2)

    def decode():
        nonlocal alive, most
        with decoded(data, 3, "x"):
            with lock:
                alive += 1
                most = max(most, alive)
            two.wait(20)  # Two of 100 pixels each go on together, a third waits.
            with lock:
                alive -= 1

    threads = [threading.Thread(target=decode) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (alive, most) == (0, 2)


def test_an_image_larger_than_the_budget_is_decoded_alone(monkeypatch):
    monkeypatch.setattr("srwm.data.decode._BUDGET", PixelBudget(50))
    with decoded(encoded(random_images(1, 3, 10)[0]), 3, "x") as image:
        assert image.shape == (3, 10, 10)


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
