"""From encoded image files to uint8 arrays of one size and number of channels."""

import io
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from jaxtyping import UInt8
from numpy import ndarray
from PIL import Image, ImageOps

from srwm.errors import InputError

from ._pixel_budget import PixelBudget
from ._shown import shown

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
"""What is read; anything else is refused before a decoder sees it."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif")
"""The endings of such files' names, in lower case."""
MAX_PIXELS = 64_000_000
"""No file may hold more; a small file that unpacks to gigabytes is refused before it is unpacked."""

MAX_SIDE = 65_535
"""Nor may it be wider or higher: such a strip would unpack to gigabytes when it is resized. JPEG has the same limit."""
MAX_FILE_BYTES = 2**28
"""What is larger is refused before it is read; so many bytes hold any image of `MAX_PIXELS` as it is."""

_MODES = {1: "L", 3: "RGB"}
_MODES_READ = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
"""What Pillow converts to grey and to colours as one expects; whole numbers of 32 bits, for one, it cuts at 255."""
_BUDGET = PixelBudget(MAX_PIXELS)


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Silence what Pillow says about images that it reads all the same: odd metadata, many pixels."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        yield


def decode_image(data: bytes, channels: int, what: str) -> UInt8[ndarray, "c h w"]:
    """Decode one image file.

    Args:
        data: the file's bytes.
        channels: 1 for grey, 3 for red, green and blue; other kinds of images are converted.
        what: how a sentence about a broken image names it.

    Returns:
        The image, upright where the file says that the camera was turned.

    Raises:
        InputError: the bytes are not a sound image file.
    """
    with decoded(data, channels, what) as image:
        return image


@contextmanager
def decoded(data: bytes, channels: int, what: str) -> Iterator[UInt8[ndarray, "c h w"]]:
    """Decode one image file as `decode_image` does, for a block that makes something smaller of it.

    While the block runs, the image's pixels count among those in memory; threads whose images would be too many wait.
    """
    with ExitStack() as held:
        try:
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                _check_sides(image, what)
                held.enter_context(_BUDGET.taken(image.width * image.height))
                array = _as_array(image, channels, what)
        except InputError:
            raise
        except Image.DecompressionBombError as error:
            raise InputError(f"{what} is too large; at most {MAX_PIXELS} pixels are read") from error
        # Pillow's decoders answer broken bytes with nearly every kind of error there is; all of them mean the same.
        except Exception as error:
            raise InputError(f"{what} is not an image that can be read: {shown(error)}") from error
        yield array


def _check_sides(image: Image.Image, what: str) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise InputError(f"{what} is {image.width} x {image.height}; at most {MAX_PIXELS} pixels are read")
    if max(image.size) > MAX_SIDE:
        raise InputError(f"{what} is {image.width} x {image.height}; at most {MAX_SIDE} pixels a side are read")


def _as_array(image: Image.Image, channels: int, what: str) -> UInt8[ndarray, "c h w"]:
    """Unpack an image into as few copies as can be: a photograph takes a hundred megabytes."""
    # Where there is nothing to turn, `exif_transpose` without `in_place` copies.
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I;16"):
        image = _of_16_bits(image)
    if image.mode not in _MODES_READ:
        raise InputError(
            f"{what} has pixels of mode {image.mode!r}; expected grey, palette or colour of up to 16 bits: convert it"
        )
    image = _flatten(image)
    array = np.asarray(image if image.mode == _MODES[channels] else image.convert(_MODES[channels]))
    return array[None] if channels == 1 else np.ascontiguousarray(array.transpose(2, 0, 1))


def _of_16_bits(image: Image.Image) -> Image.Image:
    """Give the upper 8 of 16 bits, as Pillow does for colours of 16 bits; its own conversion of grey cuts at 255."""
    array = np.asarray(image)
    grey = (array >> 8).astype(np.uint8)
    if "transparency" in image.info:
        grey[array == image.info["transparency"]] = 255
    return Image.fromarray(grey)


def _flatten(image: Image.Image) -> Image.Image:
    """Put a transparent image on white, as paper is."""
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layers = image.convert("RGBA")
        paper = Image.new("RGBA", layers.size, "white")
        return Image.alpha_composite(paper, layers)
    return image


def cut_tiles(sheet: UInt8[ndarray, "c height width"], tiles: tuple[int, int], what: str) -> UInt8[ndarray, "n c h w"]:
    """Cut a sheet of (rows, columns) equally large images into its images, row by row."""
    rows, columns = tiles
    channels, height, width = sheet.shape
    if height % rows or width % columns:
        raise InputError(f"{what} is {width} x {height}, which {columns} columns and {rows} rows do not divide")
    cells = sheet.reshape(channels, rows, height // rows, columns, width // columns)
    return np.ascontiguousarray(cells.transpose(1, 3, 0, 2, 4)).reshape(
        rows * columns, channels, height // rows, width // columns
    )


def join_tiles(images: UInt8[ndarray, "n c h w"], tiles: tuple[int, int]) -> UInt8[ndarray, "c height width"]:
    """Lay images out on a sheet: the inverse of `cut_tiles`."""
    rows, columns = tiles
    _, channels, height, width = images.shape
    cells = images.reshape(rows, columns, channels, height, width)
    return np.ascontiguousarray(cells.transpose(2, 0, 3, 1, 4)).reshape(channels, rows * height, columns * width)


def resize_images(images: UInt8[ndarray, "n c h w"], size: int) -> UInt8[ndarray, "n c s s"]:
    """Resize images to `size` x `size` with Pillow's bilinear filter; others than square ones are stretched.

    Pillow filters along rows, rounds, and filters along columns. Here all rows of all images go through it as one tall
    image, and then all columns: two calls instead of one for every image. For square images the result is bit for bit
    what Pillow gives for each alone; for others, which it takes first depends on its version, and here it does not.
    """
    return _resize_rows(_resize_rows(images, size).swapaxes(2, 3), size).swapaxes(2, 3)


def _resize_rows(images: UInt8[ndarray, "n c h w"], size: int) -> UInt8[ndarray, "n c h s"]:
    number, channels, height, width = images.shape
    if width == size:
        return images
    tall = Image.fromarray(np.ascontiguousarray(images).reshape(-1, width))
    resized = np.asarray(tall.resize((size, tall.height), Image.Resampling.BILINEAR))
    return resized.reshape(number, channels, height, size)


def encode_image(image: UInt8[ndarray, "c h w"]) -> bytes:
    """Encode an image without loss: grey as PNG (one bit a pixel where black and white suffice), colours as WebP."""
    buffer = io.BytesIO()
    if image.shape[0] == 1:
        picture = Image.fromarray(image[0])
        if bool(((image == 0) | (image == 255)).all()):
            picture = picture.convert("1", dither=Image.Dither.NONE)
        picture.save(buffer, "PNG", optimize=True)
    else:
        picture = Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))
        # Without loss, `quality` and `method` are the effort; more of it gains one percent.
        picture.save(buffer, "WEBP", lossless=True, quality=20, method=2)
    return buffer.getvalue()
