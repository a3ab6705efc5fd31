"""MP4 files by ffmpeg, which reads raw pictures from us and runs beside us."""

import contextlib
import importlib
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from srwm.errors import InputError, RunError


def find_ffmpeg(out: Path) -> str:
    """Find the program that comes with imageio-ffmpeg.

    Raises:
        InputError: if it is not installed; `out` is what it was wanted for.
    """
    try:
        return str(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        raise InputError(
            f"{out} needs imageio-ffmpeg: install it with `pip install 'srwm[video]'`, or write a .gif"
        ) from None


def has_ffmpeg() -> bool:
    """Whether `find_ffmpeg` would find it."""
    try:
        find_ffmpeg(Path())
    except InputError:
        return False
    return True


class Mp4Writer:
    """Sends pictures to ffmpeg."""

    def __init__(self, program: str, path: Path, name: Path, fps: float) -> None:
        self._program, self._path, self._name, self._fps = program, path, name, fps
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `close`)

    def add(self, picture: UInt8[np.ndarray, "h w 3"], times: int) -> None:
        """Add a picture.

        Raises:
            RunError: if ffmpeg cannot be started, or gives up.
        """
        if self._process is None:
            self._process = self._start(picture.shape[1], picture.shape[0])
        assert self._process.stdin is not None
        data = np.ascontiguousarray(picture).data
        try:
            for _ in range(times):
                self._process.stdin.write(data)
        except BrokenPipeError:
            self.close(broken=False)

    def close(self, *, broken: bool) -> None:
        """Wait until all is written; a video that is not wanted any more is given up at once.

        Raises:
            RunError: if ffmpeg failed.
        """
        if self._process is None:
            self._errors.close()
            return
        process, self._process = self._process, None
        assert process.stdin is not None
        if broken:
            process.kill()
        # What is left in the buffer cannot be sent to a program that has ended.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        status = process.wait()
        with self._errors as errors:
            errors.seek(0)
            said = errors.read().decode(errors="replace").split("\n")
        if status and not broken:
            # Its lines begin with the address of the part that speaks, in brackets.
            reasons = [re.sub(r"^(\[[^]]*\]\s*)+", "", line).strip() for line in said]
            reason = next(filter(None, reasons), f"it ended with status {status}")
            raise RunError(f"{self._name} cannot be written: ffmpeg stopped: {reason}")

    def _start(self, width: int, height: int) -> "subprocess.Popen[bytes]":
        pictures = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(self._fps), "-i", "-"]
        # Pictures of this size are taken for BT.709 by players, so that they must be, and say so.
        colours = ["-vf", "scale=out_color_matrix=bt709", "-pix_fmt", "yuv420p"]
        colours += ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"]
        coding = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "18", "-movflags", "+faststart", "-f", "mp4"]
        words = [self._program, "-y", "-loglevel", "error", *pictures, *colours, *coding, str(self._path.absolute())]
        try:
            return subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                # Ctrl-C is ours to answer: it must not end the program before its last picture.
                start_new_session=True,
            )
        except OSError as error:
            reason = f"ffmpeg cannot be started from {self._program} ({error.strerror})"
            raise RunError(f"{self._name} cannot be written: {reason}") from error
