"""Videos, read back."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from srwm.errors import InputError, RunError
from srwm.video import Video
from srwm.video._gif import SCALE

GROUND, SQUARE = (18, 21, 27), (232, 112, 138)


def picture_of(place, size=(96, 144)):
    """A square that moves over dark ground."""
    picture = np.empty((*size, 3), np.uint8)
    picture[:] = GROUND
    picture[20:60, 10 * place : 10 * place + 40] = SQUARE
    return picture


def write(out, number=4, fps=15, times=1):
    with Video(out, fps) as video:
        for place in range(number):
            video.add(picture_of(place), times)
    assert video.frames == number * times
    return out


def read_gif(path):
    """Give the pictures and the seconds that each is shown for."""
    with Image.open(path) as image:
        pictures, seconds = [], []
        for number in range(image.n_frames):
            image.seek(number)
            pictures.append(np.asarray(image.convert("RGB")))
            seconds.append(image.info["duration"] / 1000)
        assert image.info["loop"] == 0
    return pictures, seconds


def read_mp4(path, size=(96, 144)):
    """Give the pictures, and what ffmpeg says about the file."""
    program = imageio_ffmpeg.get_ffmpeg_exe()
    options = ["-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run([program, *options], capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, *size, 3), done.stderr.decode()


class TestGif:
    def test_what_is_read_back_is_what_was_added(self, tmp_path):
        pictures, _ = read_gif(write(tmp_path / "a.gif"))
        assert len(pictures) == 4
        for place, picture in enumerate(pictures):
            size = (round(144 * SCALE), round(96 * SCALE))
            expected = np.asarray(Image.fromarray(picture_of(place)).resize(size, Image.Resampling.HAMMING))
            assert picture.shape == expected.shape
            # Colours are rounded, and nothing of the frames before is left where the square was.
            assert np.abs(picture.astype(int) - expected).max() < 24

    def test_it_lasts_as_long_as_it_should_though_gif_counts_in_hundredths(self, tmp_path):
        _, seconds = read_gif(write(tmp_path / "a.gif", number=7, fps=15, times=5))
        assert sum(seconds) == pytest.approx(35 / 15, abs=0.006)
        _, seconds = read_gif(write(tmp_path / "a.gif", number=9, fps=15))
        assert sum(seconds) == pytest.approx(9 / 15, abs=0.006)
        assert len(set(seconds)) == 2

    def test_what_does_not_move_takes_no_room(self, tmp_path):
        sizes = []
        for moves in (False, True):
            noise = np.random.default_rng(0).integers(256, size=(2, 96, 144, 3), dtype=np.uint8)
            with Video(tmp_path / "a.gif") as video:
                video.add(noise[0])
                video.add(noise[int(moves)])
            sizes.append((tmp_path / "a.gif").stat().st_size)
        assert sizes[0] < 0.65 * sizes[1]

    def test_a_full_disk_is_a_sentence(self, tmp_path, monkeypatch):
        class Full:
            def write(self, data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

        monkeypatch.setattr(Path, "open", lambda path, mode: Full())
        with pytest.raises(RunError, match=r"a\.gif cannot be written: the disk is full"):
            write(tmp_path / "a.gif")
        assert list(tmp_path.iterdir()) == []


class TestMp4:
    def test_what_is_read_back_is_what_was_added(self, tmp_path):
        pictures, about = read_mp4(write(tmp_path / "a.mp4", number=6, times=2))
        assert "144x96" in about
        assert "15 fps" in about
        assert len(pictures) == 12
        for place in range(6):
            for picture in pictures[2 * place : 2 * place + 2]:
                middle = picture[40, 10 * place + 20]
                assert np.abs(middle.astype(int) - SQUARE).max() < 16
                assert np.abs(picture[80, 10].astype(int) - GROUND).max() < 8

    def test_ffmpeg_that_fails_is_a_sentence(self, tmp_path, monkeypatch):
        program = tmp_path / "ffmpeg"
        program.write_text("#!/bin/sh\necho '[out#0/mp4 @ 0x55] No space left on device' >&2\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(program))
        (tmp_path / "out").mkdir()
        with pytest.raises(RunError, match=r"a\.mp4 cannot be written: ffmpeg stopped: No space left on device$"):
            write(tmp_path / "out" / "a.mp4", number=50)
        assert list((tmp_path / "out").iterdir()) == []

    def test_ffmpeg_that_is_not_there_is_a_sentence(self, tmp_path, monkeypatch):
        monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "no/ffmpeg")
        with pytest.raises(RunError, match=r"a\.mp4 cannot be written: ffmpeg cannot be started from no/ffmpeg"):
            write(tmp_path / "a.mp4")
        assert list(tmp_path.iterdir()) == []

    def test_without_ffmpeg_a_sentence_says_what_to_install(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
        with pytest.raises(InputError, match=r"needs imageio-ffmpeg: .* 'srwm\[video\]'`, or write a \.gif"):
            Video(tmp_path / "a.mp4")
        write(tmp_path / "a.gif")


@pytest.mark.parametrize("kind", [".gif", ".mp4"])
class TestEither:
    def test_a_failure_on_the_way_leaves_what_was_there_before(self, tmp_path, kind):
        out = tmp_path / f"a{kind}"
        out.write_bytes(b"before")

        def fail():
            with Video(out) as video:
                video.add(picture_of(0))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {out.name: b"before"}

    def test_nothing_is_written_where_nothing_was_added(self, tmp_path, kind):
        with Video(tmp_path / f"a{kind}") as video:
            pass
        assert video.frames == 0
        assert list(tmp_path.iterdir()) == []

    def test_folders_are_made(self, tmp_path, kind):
        assert write(tmp_path / "new" / "folder" / f"a{kind}").stat().st_size > 0

    def test_a_place_that_cannot_be_written_to_is_a_sentence(self, tmp_path, kind):
        (tmp_path / "file").write_text("")
        with pytest.raises(RunError, match="cannot be written"):
            write(tmp_path / "file" / f"a{kind}")


@pytest.mark.parametrize(
    ("name", "fps", "sentence"),
    [
        ("a.avi", 15, r"a\.avi: expected a name that ends in \.mp4 or \.gif, got '\.avi'"),
        ("a", 15, r"a: expected a name that ends in \.mp4 or \.gif, got ''"),
        ("a.gif", 51, r"fps: expected 1 to 50 frames a second for \.gif, got 51"),
        ("a.mp4", 0, r"fps: expected 1 to 120 frames a second for \.mp4, got 0"),
        ("", 15, r"expected the name of a file"),
    ],
)
def test_what_cannot_be_a_video_is_refused(tmp_path, name, fps, sentence):
    with pytest.raises(InputError, match=sentence):
        Video(tmp_path / name, fps)
