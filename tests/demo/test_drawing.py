"""Drawings become images as those of the sources, to the pixel where that can be asked."""

import io
import random

import numpy as np
import pytest
import torch
from PIL import Image

from srwm.data import strokes as strokes_source
from srwm.data.convert import convert_omniglot
from srwm.data.decode import resize_images
from srwm.data.strokes import draw_strokes
from srwm.data.strokes_pen import draw_paths
from srwm.demo.drawing import LOOKS, SHIFT, SIZES, Look, draw_image, look_of, place, read_picture
from srwm.errors import InputError

from .small import CROSS, HOOK, RING, SHAPE, SIZE

STROKES, OMNIGLOT = LOOKS["strokes"], LOOKS["omniglot"]


def png(pixels, mode=None, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode or "L").save(file, "PNG", **options)
    return file.getvalue()


def box(image):
    """Left, top, right and bottom of the ink, in image sides."""
    rows, columns = np.nonzero(image[0] > 127)
    size = image.shape[-1]
    return columns.min() / size, rows.min() / size, (columns.max() + 1) / size, (rows.max() + 1) / size


def test_the_pen_of_strokes_is_that_of_the_source():
    assert STROKES.pen == strokes_source._PEN


def test_a_drawing_is_what_the_source_draws_along_the_same_path():
    path = np.array(HOOK, np.float32)[None]
    wanted = draw_paths(path, np.full((1, 1), STROKES.pen, np.float32), np.ones((1, 1), bool), SIZE)
    assert np.array_equal(draw_image(HOOK, STROKES, SHAPE), wanted)


def test_lines_of_omniglot_are_five_pixels_wide_in_every_direction():
    large = (1, 105, 105)
    for stroke in ([[0.2, 0.5], [0.8, 0.5]], [[0.5, 0.2], [0.5, 0.8]]):
        ink = draw_image([stroke], OMNIGLOT, large)[0] == 255
        assert set(ink.sum(axis=0)[40:60]) == {5} or set(ink.sum(axis=1)[40:60]) == {5}
    ink = draw_image([[[0.2, 0.2], [0.8, 0.8]]], OMNIGLOT, large)[0] == 255
    # Across a diagonal, five pixels are seven along a row.
    assert set(ink.sum(axis=1)[40:60]) <= {6, 7, 8}


def test_omniglot_is_drawn_in_black_and_white_and_then_resized_as_the_source_is():
    drawn = draw_image(RING, OMNIGLOT, (1, 105, 105))
    assert set(np.unique(drawn)) == {0, 255}
    assert np.array_equal(draw_image(RING, OMNIGLOT, (1, 28, 28)), resize_images(drawn[None], 28)[0])


def test_ink_is_bright_and_upright():
    image = draw_image([[[0.3, 0.25], [0.3, 0.75]], [[0.3, 0.75], [0.7, 0.75]]], STROKES, (1, 40, 40))[0]
    assert image[15, 12] == 255
    assert image[30, 25] == 255
    assert image[15, 27] == image[10, 20] == 0


def test_drawings_like_those_of_training_keep_their_size_and_place():
    points = np.array([[[0.3, 0.2], [0.35, 0.8]], [[0.35, 0.8], [0.7, 0.5]]])
    assert np.allclose(place(points, 0.03), points)


@pytest.mark.parametrize("look", [STROKES, OMNIGLOT])
@pytest.mark.parametrize(
    "stroke",
    [[[0.02, 0.02], [0.2, 0.2]], [[0.0, 0.0], [1.0, 1.0]], [[0.9, 0.1], [0.95, 0.9]], [[0.0, 1.0], [0.3, 1.0]]],
)
def test_other_drawings_are_brought_to_a_size_and_place_that_training_knows(stroke, look):
    left, top, right, bottom = box(draw_image([stroke], look, (1, 200, 200)))
    assert SIZES[0] - 0.02 <= max(right - left, bottom - top) <= SIZES[1] + 0.02
    assert abs((left + right) / 2 - 0.5) <= SHIFT + 0.01
    assert abs((top + bottom) / 2 - 0.5) <= SHIFT + 0.01


def test_most_drawings_of_the_source_lie_within_the_bounds():
    images = draw_strokes("train", image_size=105, classes=100, per_class=5).images.numpy()
    boxes = np.array([box(image) for image in images])
    longer = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    assert np.mean((longer >= SIZES[0]) & (longer <= SIZES[1])) > 0.97
    assert np.mean(np.abs(middle - 0.5) <= SHIFT) > 0.97


def test_a_dot_stays_a_dot():
    left, top, right, bottom = box(draw_image([[[0.5, 0.5]]], STROKES, (1, 100, 100)))
    assert max(right - left, bottom - top) < 0.08


def test_the_shape_stays_when_a_drawing_is_moved_and_scaled():
    small = draw_image([[[0.02 + 0.1 * x, 0.03 + 0.1 * y] for x, y in stroke] for stroke in CROSS], STROKES, SHAPE)
    left, top, right, bottom = box(small)
    assert abs((right - left) - (bottom - top)) <= 1.01 / SIZE


def test_a_drawing_is_repeated_in_every_colour():
    image = draw_image(RING, STROKES, (3, SIZE, SIZE))
    assert image.shape == (3, SIZE, SIZE)
    assert np.array_equal(image[0], image[2])


def test_a_picture_of_strokes_is_the_image_itself():
    image = draw_strokes("test", image_size=SIZE, classes=1, per_class=1).images[0].numpy()
    assert read_picture(png(image[0]), STROKES, SHAPE)[1] is False
    assert np.array_equal(read_picture(png(image[0]), STROKES, SHAPE)[0], image)


def test_a_picture_of_omniglot_is_what_the_pack_gives(tmp_path):
    import zipfile

    from srwm.data.load import read_class

    generator = random.Random(0)
    path = tmp_path / "images_background.zip"
    files = []
    with zipfile.ZipFile(path, "w") as archive:
        for drawer in range(1, 21):
            ink = draw_image([[[generator.random(), generator.random()] for _ in range(4)]], OMNIGLOT, (1, 105, 105))
            files.append(png(255 - ink[0], "1"))
            archive.writestr(f"images_background/Alphabet/character01/0001_{drawer:02d}.png", files[-1])
    pack = convert_omniglot([path], tmp_path / "pack.npz", lambda text: None)
    wanted = read_class(pack, 0, 1, True, 28)
    for file, image in zip(files, wanted, strict=True):
        pixels, inverted = read_picture(file, OMNIGLOT, (1, 28, 28))
        assert inverted
        assert np.array_equal(pixels, image)


def test_ink_is_what_one_says_it_is():
    ink = draw_image(HOOK, STROKES, SHAPE)
    dark, bright = png(255 - ink[0]), png(ink[0])
    for file, word, inverted in ((dark, "bright", False), (bright, "dark", True), (dark, "dark", True)):
        assert read_picture(file, STROKES, SHAPE, word)[1] is inverted
    assert np.array_equal(read_picture(dark, STROKES, SHAPE)[0], read_picture(bright, STROKES, SHAPE)[0])


def test_photographs_are_not_inverted_for_a_source_that_is_no_ink():
    assert read_picture(png(np.full((9, 9), 250, np.uint8)), look_of("fc100"), SHAPE)[1] is False


def test_transparent_pictures_lie_on_white_paper():
    drawn = np.zeros((50, 50, 4), np.uint8)
    drawn[20:30, 10:40, 3] = 255
    file = io.BytesIO()
    Image.fromarray(drawn, "RGBA").save(file, "PNG")
    pixels, inverted = read_picture(file.getvalue(), STROKES, SHAPE)
    assert inverted
    assert pixels[0, SIZE // 2, SIZE // 2] == 255
    assert pixels[0, 0, 0] == 0


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", b"<svg/>", png(np.zeros((9, 9), np.uint8))[:40], b"\x89PNG" + bytes(99)]
)
def test_what_is_no_picture_gets_a_sentence(data):
    with pytest.raises(InputError, match="the picture is not an image that can be read"):
        read_picture(data, STROKES, SHAPE)


def test_unknown_sources_have_a_look_too():
    assert look_of("folder:somewhere") == Look(pen=STROKES.pen, bright_ink=False)
    assert look_of("omniglot-original") is OMNIGLOT


def test_equal_drawings_give_equal_pixels():
    torch.manual_seed(1)
    one = draw_image(RING, OMNIGLOT, SHAPE)
    assert np.array_equal(draw_image([list(stroke) for stroke in RING], OMNIGLOT, SHAPE), one)
