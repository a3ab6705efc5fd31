"""Contact sheets: many small images on one white page, with words beside and below them."""

import bisect
import functools
import math
from collections.abc import Sequence
from typing import Literal, TypeVar, get_args

import torch
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from srwm.errors import InputError

Mark = Literal["right", "wrong", "none"]
Item = TypeVar("Item")

_PAPER = "#ffffff"
_INK = "#24292f"
_FAINT_INK = "#57606a"
_RIGHT = "#1a7f37"
_WRONG = "#cf222e"
_FONT_SIZE = 12
_LINE = 17
"""Height of a line of text."""
_MARGIN = 12
_GAP = 6
_FRAME = 3
_FRAME_GAP = 2
_DASH = 7
_WIDEST_CAPTION = 88
_WIDEST_TITLE = 200
_MAX_PIXELS = 2**27
"""Of a sheet's images: 400 MB, and as much again while they are laid out."""
_EPISODE_COLUMNS = 10
"""Images in a row of an episode's sheet; more go on in the next row."""


def contact_sheet(
    rows: Sequence[Sequence[UInt8[Tensor, "_c _h _w"]]],
    *,
    row_titles: Sequence[str] | None = None,
    captions: Sequence[Sequence[str]] | None = None,
    marks: Sequence[Sequence[Mark]] | None = None,
    scale: int = 2,
) -> Image.Image:
    """Lay images out in rows.

    Images are shown as stored and enlarged without smoothing; they may differ in size and in the number of channels.
    Words that are too long for their place end in dots.

    Args:
        rows: images of each row, grey [1, h, w] or red, green and blue [3, h, w].
        row_titles: what stands to the left of each row; may have several lines.
        captions: what stands below each image.
        marks: a frame around each image: green and whole if "right", red and dashed if "wrong".
        scale: pixels of the sheet for a pixel of an image, along each side.

    Returns:
        The sheet, in RGB.

    Raises:
        InputError: if there is nothing to show, an image is of another kind, or titles, captions or marks do not match
            the rows.
    """
    if scale < 1:
        raise InputError(f"scale={scale}; expected at least 1")
    if not any(len(row) for row in rows):
        raise InputError("a contact sheet needs at least one image; none came")
    if row_titles is not None and len(row_titles) != len(rows):
        raise InputError(f"{len(row_titles)} row_titles for {len(rows)} rows; expected one for each")
    _check_size(rows, scale)
    words = _beside("captions", captions, rows)
    frames = _beside("marks", marks, rows)
    tiles = [
        [_tile(_picture(image, scale), caption, mark) for image, caption, mark in zip(*cells, strict=True)]
        for cells in zip(rows, words, frames, strict=True)
    ]
    titles = [_title(title) for title in row_titles] if row_titles is not None else [None] * len(rows)

    cell = max(tile.width for row in tiles for tile in row)
    heights = [
        max((item.height for item in (*row, title) if item), default=0)
        for row, title in zip(tiles, titles, strict=True)
    ]
    left = _MARGIN + max((title.width + _MARGIN for title in titles if title), default=0)
    width = left + max(map(len, tiles)) * (cell + _GAP) - _GAP + _MARGIN
    sheet = Image.new("RGB", (width, sum(heights) + _GAP * (len(heights) - 1) + 2 * _MARGIN), _PAPER)
    top = _MARGIN
    for row, title, height in zip(tiles, titles, heights, strict=True):
        if title:
            sheet.paste(title, (_MARGIN, top + (height - title.height) // 2))
        for i, tile in enumerate(row):
            # On one line with their lower edges, and so with their captions.
            sheet.paste(tile, (left + i * (cell + _GAP) + (cell - tile.width) // 2, top + height - tile.height))
        top += height + _GAP
    return sheet


def _check_size(rows: Sequence[Sequence[UInt8[Tensor, "_c _h _w"]]], scale: int) -> None:
    """Refuse a sheet that would take gigabytes, before anything is drawn."""
    # What is no image is refused when it is drawn.
    sides = [image.shape[1:] for row in rows for image in row if image.ndim == 3]
    height, width = (max((side[index] for side in sides), default=0) * scale for index in (0, 1))
    longest = max(map(len, rows))
    if len(rows) * height * longest * width > _MAX_PIXELS:
        raise InputError(
            f"a contact sheet of {len(rows)} x {longest} images of {width} x {height} would have more than "
            f"{_MAX_PIXELS} pixels; show fewer images"
        )


def episode_sheet(
    support: UInt8[Tensor, "n c h w"],
    support_labels: Sequence[int],
    query: UInt8[Tensor, "q c h w"],
    query_labels: Sequence[int],
    predictions: Sequence[int],
    *,
    scale: int = 3,
    label_names: Sequence[str] | None = None,
) -> Image.Image:
    """Show one episode: the support images with their labels, then the queries with what was predicted.

    Below a query stands the prediction; where it is wrong, the true label follows it.

    Args:
        support: the images that were shown with their labels.
        support_labels: their labels.
        query: the images whose label was asked for.
        query_labels: their true labels.
        predictions: the labels predicted for them.
        scale: pixels of the sheet for a pixel of an image, along each side.
        label_names: what each label is called; None shows the numbers.

    Returns:
        The sheet, in RGB.

    Raises:
        InputError: if there are not as many labels or predictions as images, or a label has no name.
    """
    for name, labels, images in (
        ("support_labels", support_labels, support),
        ("query_labels", query_labels, query),
        ("predictions", predictions, query),
    ):
        if len(labels) != len(images):
            raise InputError(f"{len(labels)} {name} for {len(images)} images; expected one for each")

    def name_of(label: int) -> str:
        if label_names is None:
            return str(label)
        if not 0 <= label < len(label_names):
            raise InputError(f"label {label} has no name; {len(label_names)} names came")
        return label_names[label]

    marks: list[Mark] = ["right" if a == b else "wrong" for a, b in zip(predictions, query_labels, strict=True)]
    answers = [
        name_of(guess) if guess == label else f"{name_of(guess)}, is {name_of(label)}"
        for guess, label in zip(predictions, query_labels, strict=True)
    ]
    none: list[Mark] = ["none"] * len(support)
    shown, asked = _in_rows(list(support)), _in_rows(list(query))
    titles = [""] * (len(shown) + len(asked))
    if asked:
        titles[len(shown)] = f"query\n{marks.count('right')} of {len(marks)} right"
    if shown:
        titles[0] = "support"
    return contact_sheet(
        shown + asked,
        row_titles=titles,
        captions=_in_rows([name_of(label) for label in support_labels]) + _in_rows(answers),
        marks=_in_rows(none) + _in_rows(marks),
        scale=scale,
    )


def _in_rows(items: Sequence[Item]) -> list[list[Item]]:
    """Break a row that is too long."""
    return [list(items[i : i + _EPISODE_COLUMNS]) for i in range(0, len(items), _EPISODE_COLUMNS)]


def _beside(
    name: str, given: Sequence[Sequence[Item]] | None, rows: Sequence[Sequence[Tensor]]
) -> Sequence[Sequence[Item | None]]:
    """What was given for each image; None for each where nothing was."""
    if given is None:
        return [[None] * len(row) for row in rows]
    if [len(row) for row in given] != [len(row) for row in rows]:
        raise InputError(f"{name} do not match the images; expected one for each image of each row")
    return given


def _picture(image: Tensor, scale: int) -> Image.Image:
    """An image as Pillow knows it, enlarged."""
    if image.dtype != torch.uint8 or image.ndim != 3 or image.shape[0] not in (1, 3) or not image.numel():
        raise InputError(f"an image is {image.dtype} {list(image.shape)}; expected torch.uint8 [1 or 3, h, w]")
    large = image.repeat_interleave(scale, 1).repeat_interleave(scale, 2)
    return Image.fromarray(large.expand(3, -1, -1).permute(1, 2, 0).contiguous().cpu().numpy())


def _tile(picture: Image.Image, caption: str | None, mark: Mark | None) -> Image.Image:
    """A picture with its frame around it and its caption below."""
    if mark is not None and mark not in get_args(Mark):
        raise InputError(f"mark {mark!r}; expected one of {', '.join(map(repr, get_args(Mark)))}")
    border = _FRAME + _FRAME_GAP if mark is not None else 0
    framed = picture.width + 2 * border, picture.height + 2 * border
    text = _shorten(caption or "", max(_WIDEST_CAPTION, framed[0]))
    width = max(framed[0], _width(text))
    tile = Image.new("RGB", (width, framed[1] + (_LINE if caption is not None else 0)), _PAPER)
    pen = ImageDraw.Draw(tile)
    left = (width - framed[0]) // 2
    tile.paste(picture, (left + border, border))
    if mark == "right":
        pen.rectangle((left, 0, left + framed[0] - 1, framed[1] - 1), outline=_RIGHT, width=_FRAME)
    elif mark == "wrong":
        _draw_dashes(tile, left, *framed)
    if text:
        colour = _WRONG if mark == "wrong" else _INK
        pen.text((width / 2, framed[1] + _LINE / 2 + 1), text, fill=colour, font=_font(), anchor="mm")
    return tile


def _draw_dashes(tile: Image.Image, left: int, width: int, height: int) -> None:
    """A dashed frame along the edge of a box at the upper end of a tile, with all four corners drawn."""
    mask = Image.new("1", (width, height))
    pen = ImageDraw.Draw(mask)
    # An odd number of equal dashes and gaps begins and ends with a dash.
    across, down = (2 * max(1, round(side / _DASH / 2)) + 1 for side in (width, height))
    for i in range(0, across, 2):
        dash = (i * width // across, (i + 1) * width // across - 1)
        for y in (0, height - _FRAME):
            pen.rectangle((dash[0], y, dash[1], y + _FRAME - 1), fill=1)
    for i in range(0, down, 2):
        dash = (i * height // down, (i + 1) * height // down - 1)
        for x in (0, width - _FRAME):
            pen.rectangle((x, dash[0], x + _FRAME - 1, dash[1]), fill=1)
    tile.paste(_WRONG, (left, 0), mask)


def _title(title: str) -> Image.Image:
    """The words beside a row."""
    lines = [_shorten(text, _WIDEST_TITLE) for text in title.split("\n")]
    tile = Image.new("RGB", (max(1, *map(_width, lines)), _LINE * len(lines)), _PAPER)
    pen = ImageDraw.Draw(tile)
    for i, text in enumerate(lines):
        pen.text((0, _LINE * (i + 0.5)), text, fill=_INK if i == 0 else _FAINT_INK, font=_font(), anchor="lm")
    return tile


def _shorten(text: str, widest: int) -> str:
    """A text that fits, with dots where its end is missing."""
    if _width(text) <= widest:
        return text
    kept = bisect.bisect_right(range(len(text)), widest, key=lambda n: _width(text[:n] + "...")) - 1
    return text[: max(kept, 0)] + "..."


def _width(text: str) -> int:
    """How many pixels wide a line of text is."""
    return math.ceil(_font().getlength(text))


@functools.cache
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(_FONT_SIZE)
