"""Saves of a live stream that end at any of their disk calls: the state before or the new one is there, and loads."""

import contextlib
import os
import shutil
from itertools import count

import pytest

from srwm.errors import RunError
from srwm.live import LiveStream, saved_state
from srwm.live.saved_state import Position

from .live_streams import pictures, tiny_model


class Killed(BaseException):
    """In the place of SIGKILL."""


class Disk:
    """Takes so many calls that change or sync something on disk; from then on the process counts as dead."""

    CALLS = ("open", "write", "fsync", "ftruncate", "mkdir", "rename", "replace", "unlink", "remove", "rmdir")

    def __init__(self, monkeypatch, calls):
        self.left = calls
        for name in self.CALLS:
            monkeypatch.setattr(os, name, self._dying(name, getattr(os, name)))

    def _dying(self, name, call):
        def until_dead(*arguments, **options):
            self.left -= 1
            if self.left < 0:
                if self.left == -1 and name == "write":
                    call(arguments[0], bytes(arguments[1][: len(arguments[1]) // 2]))
                raise Killed
            return call(*arguments, **options)

        return until_dead


@pytest.fixture(scope="module")
def model():
    return tiny_model(num_layers=1)


def shown(stream):
    """What tells two states apart: the steps, where the input is, and the answer to the same image."""
    if stream.position is None:
        return None
    state, progress = stream.state, stream.progress
    answer = stream.ask(pictures(1, seed=9)[0]).probabilities
    stream.state = state
    progress.step -= 1
    return stream.step, stream.position.answered, answer


def write(stream, folder, answered):
    stream.save(folder, Position("lines", answered))


def save_killed_at(monkeypatch, calls, stream, folder, answered):
    """Save, and die at a disk call; whether the save came to its end before."""
    with monkeypatch.context() as patch:
        Disk(patch, calls)
        try:
            write(stream, folder, answered)
        except Killed:
            return False
    return True


@pytest.mark.parametrize("images", [0, 1], ids=["same-step", "next-step"])
@pytest.mark.parametrize("saves", [0, 1, 2, 3])
def test_a_kill_at_any_disk_call_of_a_save_keeps_the_old_state_or_the_new_one(
    model, tmp_path, monkeypatch, saves, images
):
    stream = LiveStream(model)
    (tmp_path / "before").mkdir()
    for answered, image in enumerate(pictures(3)):
        stream.ask(image)
        stream.tell(answered % 2)
        if answered >= 3 - saves:
            write(stream, tmp_path / "before", answered)
    before = shown(LiveStream.open(model, tmp_path / "before"))
    stream.forget()
    for image in pictures(images, seed=5):
        stream.ask(image)
    seen = set()
    for calls in count():
        folder = tmp_path / f"{calls:03d}"
        shutil.copytree(tmp_path / "before", folder)
        is_whole = save_killed_at(monkeypatch, calls, stream, folder, 99)
        found = LiveStream.open(model, folder)
        now = shown(found)
        seen.add(now)
        saved_state.clear_leftovers(folder)
        assert not list(folder.glob("*.tmp"))
        assert shown(LiveStream.open(model, folder)) == now
        write(found, folder, 100)
        assert LiveStream.open(model, folder).position.answered == 100
        assert len(list(folder.iterdir())) <= 2
        if is_whole:
            break
    assert calls > 10
    assert now[:2] == (3 + images, 99)
    assert seen == {before, now}


def test_a_kill_at_any_disk_call_of_the_cleaning_keeps_the_state(model, tmp_path, monkeypatch):
    stream = LiveStream(model)
    stream.ask(pictures(1)[0])
    write(stream, tmp_path / "before", 1)
    assert not save_killed_at(monkeypatch, 9, stream, tmp_path / "before", 2)
    assert list((tmp_path / "before").glob("*.tmp"))
    for calls in count():
        folder = tmp_path / str(calls)
        shutil.copytree(tmp_path / "before", folder)
        is_whole = False
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            Disk(patch, calls)
            saved_state.clear_leftovers(folder)
            is_whole = True
        assert LiveStream.open(model, folder).position.answered == 1
        if is_whole:
            break
    assert calls > 5
    assert not list(folder.glob("*.tmp"))


@pytest.mark.parametrize("what", ["link", "file"])
def test_a_leftover_that_no_save_made_is_a_sentence_and_is_not_followed(model, tmp_path, what):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note").touch()
    (tmp_path / "state").mkdir()
    place = tmp_path / "state" / "step-000000002.tmp"
    place.symlink_to(tmp_path / "mine") if what == "link" else place.touch()
    with pytest.raises(RunError, match=r"state cannot be written: (Cannot call rmtree|Not a directory)"):
        saved_state.clear_leftovers(tmp_path / "state")
    assert (tmp_path / "mine" / "note").exists()


def test_a_second_save_at_one_step_is_the_one_that_is_found(model, tmp_path):
    stream = LiveStream(model)
    stream.ask(pictures(1)[0])
    for answered in range(5):
        write(stream, tmp_path, answered)
        assert LiveStream.open(model, tmp_path).position == Position("lines", answered)
        assert LiveStream.open(model, tmp_path).step == 1
    assert len(list(tmp_path.iterdir())) == 2
