"""`srwm stream --watch`: images and labels of a folder, each once it is complete."""

import contextlib
import os
import socket

import pytest

from srwm.live.requests import Stop
from srwm.live.watch_folder import FolderWatch
from srwm.runs.checkpoint import latest_checkpoint

from .live_streams import write_pictures


def test_images_of_a_folder_are_answered_in_the_order_of_their_names(stream, tmp_path):
    paths = write_pictures(tmp_path / "inbox", 3) + write_pictures(tmp_path / "inbox", 3, "_owl", seed=1)
    (tmp_path / "inbox" / "0001.label.txt").write_text("cat\n")
    (tmp_path / "inbox" / "0002_owl.label.txt").write_text("")
    for name in ("notes.txt", ".hidden.png", "0001.png.part"):
        (tmp_path / "inbox" / name).write_text("no image")
    status, printed, _ = stream(["--watch", tmp_path / "inbox", "--once", "--poll", "0"])
    assert status == 0
    assert [line["id"] for line in printed] == sorted(path.name for path in paths)
    labels = {"0001.png": "cat"} | {f"000{i}_owl.png": "owl" for i in range(3)}
    lines = [{"image": str(path), "id": path.name, "label": labels.get(path.name)} for path in sorted(paths, key=str)]
    lines.sort(key=lambda line: line["id"])
    assert printed == stream([], lines)[1]


def test_a_watched_folder_goes_on_after_the_last_image(stream, tmp_path):
    folder = tmp_path / "inbox"
    options = ["--watch", folder, "--once", "--poll", "0", "--state", tmp_path / "state"]
    write_pictures(folder, 2)
    assert [line["id"] for line in stream(options)[1]] == ["0000.png", "0001.png"]
    write_pictures(folder, 4)
    (folder / "0001.label.txt").write_text("cat")
    assert [line["id"] for line in stream(options)[1]] == ["0002.png", "0003.png"]
    assert latest_checkpoint(tmp_path / "state").meta["stream"]["progress"]["names"] == ["cat"]
    assert stream(options)[:2] == (0, [])
    assert len(stream([*options[:-1], tmp_path / "new"])[1]) == 4


def test_labels_in_names_can_be_left_alone(stream, tmp_path):
    write_pictures(tmp_path / "inbox", 5, "_1")
    options = ["--watch", tmp_path / "inbox", "--once", "--poll", "0", "--report-every", "5"]
    assert stream(options)[1][-1]["labels"] == ["1"]
    assert stream([*options, "--no-name-labels"])[1][-1]["labelled"] == 0


def test_a_broken_image_or_label_in_a_folder_gets_one_sentence_and_the_rest_goes_on(stream, tmp_path):
    write_pictures(tmp_path / "inbox", 3)
    (tmp_path / "inbox" / "0001.png").write_text("no image")
    (tmp_path / "inbox" / "0001.label.txt").write_text("owl")
    (tmp_path / "inbox" / "0002.label.txt").write_text("two\nlines")
    status, printed, _ = stream(["--watch", tmp_path / "inbox", "--once", "--poll", "0"])
    assert status == 1
    assert [line.get("file", line.get("id")) for line in printed] == [
        "0000.png",
        "0001.png",
        "0002.png",
        "0002.label.txt",
    ]


@pytest.fixture
def watch(tmp_path):
    """A watch whose images all await their labels."""
    return FolderWatch(tmp_path, Stop(), awaits_label=lambda: True)


def looked(watch):
    return [request.id or request.label or request.problem for request in watch.look()]


def test_an_image_is_taken_when_it_has_not_changed_between_two_looks_and_those_after_it_wait(watch, tmp_path):
    (tmp_path / "a.png").write_bytes(b"1")
    (tmp_path / "b.png").write_bytes(b"1")
    assert looked(watch) == []
    (tmp_path / "a.png").write_bytes(b"12")
    assert looked(watch) == []
    assert looked(watch) == ["a.png", "b.png"]
    assert looked(watch) == []


def test_a_label_file_is_told_once_when_it_has_not_changed_between_two_looks(watch, tmp_path):
    (tmp_path / "a.png").write_bytes(b"1")
    looked(watch)
    (tmp_path / "a.label.txt").write_text("")
    assert looked(watch) == ["a.png"]
    (tmp_path / "a.label.txt").write_text("o")
    assert looked(watch) == []
    (tmp_path / "a.label.txt").write_text("owl")
    assert looked(watch) == []
    assert looked(watch) == ["owl"]
    assert looked(watch) == []


def test_an_image_whose_name_comes_too_late_is_told_of(watch, tmp_path):
    (tmp_path / "b.png").write_bytes(b"1")
    assert [looked(watch), looked(watch)] == [[], ["b.png"]]
    (tmp_path / "a.png").write_bytes(b"1")
    assert "1 new image passed over, whose names come before 'b.png'" in looked(watch)[0]
    assert looked(watch) == []


def test_an_image_that_is_taken_away_holds_nobody_up(watch, tmp_path, monkeypatch):
    (tmp_path / "b.png").write_bytes(b"1")
    # Listed, and gone before it is looked at.
    monkeypatch.setattr(watch, "_names", lambda: (0, ["a.png", "b.png"]))
    assert [looked(watch), looked(watch)] == [[], ["b.png"]]


def test_what_is_no_file_gets_a_sentence_in_its_turn(stream, tmp_path):
    folder = tmp_path / "inbox"
    write_pictures(folder, 1)
    os.mkfifo(folder / "0001.png")
    os.symlink("/dev/zero", folder / "0002.png")
    os.symlink(folder / "nowhere", folder / "0003.png")
    os.symlink(folder / "0004.png", folder / "0004.png")
    (folder / "0005.png").mkdir()
    os.symlink("/dev/zero", folder / "0000.label.txt")
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(folder):
        made.bind("0006.png")
    (folder / "0007.png").write_bytes(b"")
    status, printed, _ = stream(["--watch", folder, "--once", "--poll", "0"])
    assert status == 1
    sentences = {line["file"]: line["error"].rpartition(line["file"])[2] for line in printed[1:]}
    assert sentences == {
        "0001.png": " is a pipe; expected a file",
        "0002.png": " is a device; expected a file",
        "0003.png": " is a link to what does not exist",
        "0004.png": " cannot be read: Too many levels of symbolic links",
        "0005.png": " is a folder; expected a file",
        "0006.png": " is a socket; expected a file",
        "0007.png": sentences["0007.png"],
    }
    assert "is not an image that can be read" in sentences["0007.png"]


def test_labels_that_are_no_files_or_no_text_get_a_sentence(stream, tmp_path):
    folder = tmp_path / "inbox"
    write_pictures(folder, 4)
    (folder / "0000.label.txt").mkdir()
    os.symlink(folder / "nowhere", folder / "0001.label.txt")
    (folder / "0002.label.txt").write_bytes(b"\xff")
    (folder / "0003.label.txt").write_bytes(b"x" * 2000)
    status, printed, _ = stream(["--watch", folder, "--once", "--poll", "0"])
    assert status == 1
    assert [line["error"].rpartition("txt")[2] for line in printed if "error" in line] == [
        " is a folder; expected a file",
        " is a link to what does not exist",
        " is not UTF-8 text: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        " has 2,000 bytes; at most 1,024 are read",
    ]
