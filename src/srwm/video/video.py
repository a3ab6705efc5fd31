"""Videos, written picture by picture: .mp4 by ffmpeg, .gif by Pillow alone."""

import os
from pathlib import Path
from types import TracebackType

import numpy as np
from jaxtyping import UInt8

from srwm.errors import InputError
from srwm.runs.atomic import failures_as_sentences
from srwm.runs.mp4 import Mp4Writer, find_ffmpeg

from ._gif import GifWriter

MAX_FPS = {".mp4": 120, ".gif": 50}
"""Frames a second that each kind of file can show; viewers slow a faster GIF down."""


class Video:
    """A video file. It gets its name when all is written, so that there is never half of one.

    Args:
        out: the file; its ending says of what kind, .mp4 or .gif.
        fps: pictures a second.

    Attributes:
        frames: pictures that were added.

    Raises:
        InputError: if it is of another kind, or the library for it is missing.

    Example:
        >>> with Video(Path("play.mp4"), fps=15) as video:
        ...     for view in play(agent, "starpilot", [1000]):
        ...         video.add(painter.draw(view))
    """

    def __init__(self, out: Path, fps: int = 15) -> None:
        if out.is_dir():
            raise InputError(f"expected the name of a file, .mp4 or .gif, got the folder {out}")
        kind = out.suffix.lower()
        if kind not in MAX_FPS:
            raise InputError(f"{out}: expected a name that ends in .mp4 or .gif, got {out.suffix!r}")
        if not 1 <= fps <= MAX_FPS[kind]:
            raise InputError(f"fps: expected 1 to {MAX_FPS[kind]} frames a second for {kind}, got {fps}")
        self._ffmpeg = find_ffmpeg(out) if kind == ".mp4" else None
        self._out, self._fps = out, fps
        self._temporary = out.with_name(f".{out.name}.tmp")
        self._writer: GifWriter | Mp4Writer | None = None
        self.frames = 0

    def add(self, picture: UInt8[np.ndarray, "h w 3"], times: int = 1) -> None:
        """Add a picture, all of them of the same even size, for one frame or for several.

        Raises:
            RunError: if it cannot be written.
        """
        if self._writer is None:
            with failures_as_sentences(self._out):
                self._out.parent.mkdir(parents=True, exist_ok=True)
                self._temporary.touch()
            if self._ffmpeg is None:
                self._writer = GifWriter(self._temporary, self._out, self._fps)
            else:
                self._writer = Mp4Writer(self._ffmpeg, self._temporary, self._out, float(self._fps))
        self._writer.add(picture, times)
        self.frames += times

    def __enter__(self) -> "Video":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close(broken=error is not None)
            if error is None:
                with failures_as_sentences(self._out):
                    os.replace(self._temporary, self._out)
        finally:
            self._temporary.unlink(missing_ok=True)
