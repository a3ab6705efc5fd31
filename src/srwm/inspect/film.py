"""A film of matrices that rewrite themselves, as GIF or, where imageio-ffmpeg is installed, as MP4."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import UInt8
from torch import Tensor

from srwm.errors import InputError
from srwm.runs.atomic import written_whole
from srwm.runs.mp4 import Mp4Writer, find_ffmpeg
from srwm.runs.pictures import FAINT

from ._figure import COLOURS, COLUMN_NAMES, INK, gate_names, part_name
from .record import MatrixRecord

Picture = npt.NDArray[np.uint8]
"""[height, width, 3]."""

_GAP = 1
"""Empty cells between the parts of a matrix."""
_BETWEEN = 5
"""Cells between heads side by side, where the number of a head stands."""
_BELOW = 2
"""Cells between heads one below the other."""
_AREA = (7.6, 5.6)
"""Inches that the matrices may take, width and height."""
_DPI = 100


def write_film(
    record: MatrixRecord,
    out: Path,
    *,
    row: int = 0,
    images: UInt8[Tensor, "t c height width"] | None = None,
    words: list[str] | tuple[str, ...] | None = None,
    show: Literal["change", "weight"] = "change",
    frame_s: float | None = None,
    max_frames: int = 80,
    title: str | None = None,
) -> None:
    """Show the matrices of all recorded heads of a layer, first as they were before, then after each recorded step.

    Args:
        record: of the layer, with its matrices.
        out: the film; its ending says of what kind, .gif or .mp4.
        row: place of the row among the recorded ones.
        images: what the model saw at each recorded step; shown beside the matrices.
        words: what it was told with them.
        show: the change since the beginning, or the whole matrix.
        frame_s: seconds of a frame; None for about 12 seconds in all, at most 0.8 a frame.
        max_frames: of more steps than this, so many are shown, evenly spread.
        title: what stands above; None for the layer's name.

    Raises:
        InputError: if the matrices were not kept, or the film cannot be written.
    """
    if out.suffix not in (".gif", ".mp4"):
        raise InputError(f"{out} ends in {out.suffix!r}; expected .gif or .mp4")
    if not 0 <= row < len(record.rows):
        raise InputError(f"row={row}; the record has {len(record.rows)} rows, from 0 on")
    steps = len(record.step)
    for name, given in (("images", images), ("words", words)):
        if given is not None and len(given) != steps:
            raise InputError(f"{len(given)} {name} for {steps} recorded steps; expected one for each")
    if max_frames < 1 or (frame_s is not None and frame_s <= 0):
        raise InputError(f"max_frames={max_frames} and frame_s={frame_s}; expected at least 1, and more than 0")
    places = sorted(
        {round((place + 1) * steps / min(steps, max_frames)) - 1 for place in range(min(steps, max_frames))}
    )
    seconds = min(0.8, 12 / len(places)) if frame_s is None else frame_s
    frames = _frames(record, row, places, images, words, show, title or record.name)
    with written_whole(out) as temporary:
        if out.suffix == ".gif":
            _write_gif(frames, temporary, seconds)
        else:
            _write_mp4(frames, temporary, out, seconds)


def _frames(
    record: MatrixRecord,
    row: int,
    places: list[int],
    images: Tensor | None,
    words: list[str] | tuple[str, ...] | None,
    show: str,
    title: str,
) -> Iterator[Picture]:
    """Pictures, first to last, uint8 [height, width, 3]."""
    change = record.changes()[row]
    matrices = change if show == "change" else record.weight + change
    limit = max(
        float(matrices.abs().flatten().quantile(0.995) if matrices.numel() < 2**24 else matrices.abs().max()), 1e-12
    )
    film = _Film(record, limit, title, with_image=images is not None)
    # A first frame before anything was written; the last one stays for a while.
    nothing = torch.zeros_like(matrices[0]) if show == "change" else record.weight
    yield film.draw(nothing, None, None, "before the first step", None, None)
    total = int(record.step[-1])
    for place in places:
        rates = record.beta[row, place].mean(dim=0).tolist()
        yield film.draw(
            matrices[place],
            rates,
            record.forget[row, place].mean(dim=0).tolist(),
            f"step {int(record.step[place])} of {total}",
            None if images is None else images[place],
            None if words is None else words[place],
        )


class _Film:
    """One figure, drawn again for each frame: only what moves is changed."""

    def __init__(self, record: MatrixRecord, limit: float, title: str, *, with_image: bool) -> None:
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            raise InputError("films need matplotlib: install it with `pip install srwm[plot]`") from None
        self._record = record
        heads, d = len(record.heads), record.weight.shape[1]
        self._width = sum(record.columns) + _GAP * (len(record.columns) - 1)
        self._across = _columns(heads, d, self._width)
        mosaic = self._mosaic(record.weight)
        height, width = mosaic.shape
        scale = min(_AREA[0] / width, _AREA[1] / height)
        side = 1.7
        size = (side + width * scale + 0.3, max(height * scale + 1.0, 3.6 if record.forget_gates else 3.2))
        self._figure = Figure(figsize=size, dpi=_DPI)
        # matplotlib does not say what the methods of its canvas take and give.
        self._canvas: Any = FigureCanvasAgg(self._figure)
        self._add_matrices(mosaic, limit, size, side, (width * scale, height * scale), title)
        self._add_side(size, side, with_image)

    def _add_matrices(
        self,
        mosaic: Tensor,
        limit: float,
        size: tuple[float, float],
        side: float,
        inches: tuple[float, float],
        title: str,
    ) -> None:
        edge, bottom = side / size[0], (size[1] - inches[1] - 0.72) / size[1]
        panel = self._figure.add_axes((edge, bottom, inches[0] / size[0], inches[1] / size[1]))
        panel.set_axis_off()
        self._matrices = panel.imshow(mosaic.numpy(), cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
        d = self._record.weight.shape[1]
        for place, head in enumerate(self._record.heads):
            left, top = place % self._across * (self._width + _BETWEEN), place // self._across * (d + _BELOW)
            panel.text(left - 1, top + (d - 1) / 2, str(head), ha="right", va="center", fontsize=6.5, color=FAINT)
        first = 0.0
        for part, columns in zip(self._record.parts, self._record.columns, strict=True):
            for across in range(min(self._across, len(self._record.heads))):
                at = across * (self._width + _BETWEEN) + first + columns / 2 - 0.5
                name = COLUMN_NAMES.get(part, part)
                panel.text(at, -1.2, name, ha="center", va="bottom", fontsize=9, color=COLOURS[part])
            first += columns + _GAP
        self._figure.text(edge, 1 - 0.12 / size[1], title, ha="left", va="top", fontsize=11, color=INK)

    def _add_side(self, size: tuple[float, float], side: float, with_image: bool) -> None:
        self._step = self._figure.text(0.12 / size[0], 1 - 0.12 / size[1], "", va="top", fontsize=10, color=FAINT)
        self._image: Any = None
        if with_image:
            panel = self._figure.add_axes((0.2 / size[0], (size[1] - 1.75) / size[1], 1.15 / size[0], 1.15 / size[1]))
            panel.set_axis_off()
            self._image = panel.imshow(torch.full((1, 1, 3), 255, dtype=torch.uint8).numpy(), interpolation="nearest")
        self._word = self._figure.text(
            0.775 / size[0], (size[1] - 1.82) / size[1], "", ha="center", va="top", fontsize=11
        )
        rates = self._record.beta.shape[-1]
        self._bars: Any = None
        self._gate_names = gate_names(self._record)
        gates = len(self._gate_names)
        self._gates = self._figure.text(0.775 / size[0], 0.06 / size[1], "", ha="center", va="bottom", fontsize=7)
        self._gates.set_color(COLOURS["forget"])
        if rates:
            bottom = 0.3 + 0.12 * (gates + 1) * (gates > 0)
            panel = self._figure.add_axes((0.3 / size[0], bottom / size[1], 0.95 / size[0], 0.75 / size[1]))
            names = self._record.parts[:rates]
            self._bars = panel.bar(range(rates), [0.0] * rates, color=[COLOURS[name] for name in names], width=0.7)
            panel.set_ylim(0, 1)
            panel.set_xlim(-0.6, max(rates, 3) - 0.4)
            panel.set_xticks(range(rates), [part_name(name) for name in names] if rates > 1 else ["rate"], fontsize=8)
            panel.set_yticks([0, 1], ["0", "1"], fontsize=7, color=FAINT)
            panel.set_title("learning rates", fontsize=8, color=FAINT)
            panel.tick_params(length=0)
            for edge in ("top", "right", "left"):
                panel.spines[edge].set_visible(False)

    def draw(
        self,
        matrices: Tensor,
        rates: list[float] | None,
        forget: list[float] | None,
        step: str,
        image: Tensor | None,
        word: str | None,
    ) -> Picture:
        """Give the picture of one moment."""
        self._matrices.set_data(self._mosaic(matrices).numpy())
        self._step.set_text(step)
        self._word.set_text(word or "")
        if self._image is not None and image is not None:
            self._image.set_data(image.expand(3, -1, -1).permute(1, 2, 0).numpy())
            height, width = image.shape[1:]
            self._image.set_extent((-0.5, width - 0.5, height - 0.5, -0.5))
        if self._bars is not None:
            for bar, rate in zip(self._bars, rates or [0.0] * len(self._bars), strict=True):
                bar.set_height(rate)
        lines = [f"{100 * share:.2g} % of {name}" for share, name in zip(forget or [], self._gate_names, strict=False)]
        self._gates.set_text("\n".join(["forgotten:", *lines]) if lines else "")
        self._canvas.draw()
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()

    def _mosaic(self, matrices: Tensor) -> Tensor:
        """The matrices of all heads [h, d, m] as one picture, with empty cells between heads and parts."""
        heads, d, _ = matrices.shape
        down = -(-heads // self._across)
        wide = self._across * (self._width + _BETWEEN) - _BETWEEN
        mosaic = torch.full((down * (d + _BELOW) - _BELOW, wide), float("nan"))
        for head, matrix in enumerate(matrices):
            top, left = head // self._across * (d + _BELOW), head % self._across * (self._width + _BETWEEN)
            for part in matrix.split(self._record.columns, dim=-1):
                mosaic[top : top + d, left : left + part.shape[1]] = part
                left += part.shape[1] + _GAP
        return mosaic


def _columns(heads: int, height: int, width: int) -> int:
    """How many heads to put side by side so that they are drawn large and leave few places empty."""

    def fit(across: int) -> float:
        down = -(-heads // across)
        scale = min(_AREA[0] / (across * (width + _BETWEEN)), _AREA[1] / (down * (height + _BELOW)))
        return scale * heads / (across * down)

    return max(range(1, heads + 1), key=fit)


def _write_gif(frames: Iterator[Picture], out: Path, seconds: float) -> None:
    from PIL import Image

    pictures = [Image.fromarray(frame) for frame in frames]
    # One palette for all, so that colours do not flicker, from some of the frames.
    some = pictures[:: max(1, len(pictures) // 4)] + pictures[-1:]
    strip = Image.fromarray(np.concatenate([np.asarray(picture) for picture in some]))
    palette = strip.quantize(colors=256, kmeans=1)
    # Paper is white, not nearly so.
    colours = np.array(palette.getpalette()).reshape(-1, 3)
    colours[colours.min(axis=1) > 249] = 255
    palette.putpalette(colours.flatten().tolist())
    indexed = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    durations = [round(1000 * seconds)] * (len(indexed) - 1) + [round(1000 * max(seconds, 2.0))]
    indexed[0].save(out, "GIF", save_all=True, append_images=indexed[1:], duration=durations, loop=0, optimize=False)


def _write_mp4(frames: Iterator[Picture], out: Path, name: Path, seconds: float) -> None:
    writer = Mp4Writer(find_ffmpeg(name), out, name, 1 / seconds)
    is_broken = True
    try:
        for frame in frames:
            # The codec wants even sides.
            writer.add(frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2], 1)
        is_broken = False
    finally:
        writer.close(broken=is_broken)
