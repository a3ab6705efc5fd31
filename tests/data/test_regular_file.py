import os
import socket
import threading

import pytest

from srwm.data import load_images
from srwm.data.convert import convert_folder
from srwm.data.decode import MAX_FILE_BYTES
from srwm.data.regular_file import open_regular_file, read_regular_file
from srwm.errors import InputError

from .images import write_folder

KINDS = ["pipe", "device", "socket", "nothing", "folder"]
SENTENCES = {
    "pipe": "is a pipe; expected a file",
    "device": "is a device; expected a file",
    "socket": "is a socket; expected a file",
    "nothing": "is a link to what does not exist",
    "folder": "is a folder; expected a file",
}


@pytest.fixture
def make(monkeypatch):
    """Put something that is no file at a path."""
    sockets = []

    def put(path, kind):
        match kind:
            case "pipe":
                os.mkfifo(path)
            case "device":
                path.symlink_to("/dev/zero")
            case "socket":
                # The path of a socket is short.
                monkeypatch.chdir(path.parent)
                sockets.append(socket.socket(socket.AF_UNIX))
                sockets[-1].bind(path.name)
            case "nothing":
                path.symlink_to("nowhere")
            case "folder":
                path.mkdir()
        return path

    yield put
    for one in sockets:
        one.close()


@pytest.mark.parametrize("kind", KINDS)
def test_only_files_are_opened(kind, make, tmp_path):
    with pytest.raises(InputError, match=rf"x\.png {SENTENCES[kind]}"):
        open_regular_file(make(tmp_path / "x.png", kind))


def test_a_pipe_that_takes_a_files_place_after_the_first_look_keeps_no_reader_waiting(make, tmp_path, monkeypatch):
    file, pipe = tmp_path / "file", make(tmp_path / "x.png", "pipe")
    file.write_bytes(b"1")
    looked_at = os.stat(file)
    monkeypatch.setattr(os, "stat", lambda *_: looked_at)
    with pytest.raises(InputError, match=r"x\.png is a pipe"):
        open_regular_file(pipe)


def test_a_file_is_read_also_through_a_link(tmp_path):
    (tmp_path / "a").write_bytes(b"some bytes")
    (tmp_path / "link").symlink_to("a")
    assert read_regular_file(tmp_path / "link", 10) == b"some bytes"


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match=rf"a has {2**40} bytes; at most 10 are read"):
        read_regular_file(path, 10)


@pytest.mark.parametrize(
    ("name", "problem"), [("nowhere", "does not exist"), ("a" * 5000, "cannot be read"), ("a\0b", "cannot be the name")]
)
def test_what_is_not_there_is_named(name, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        read_regular_file(tmp_path / name, 10)


def outcome(call):
    """The sentence of an error, from a thread that the test does not wait for if it hangs."""
    found = []

    def run():
        try:
            found.append(call())
        except InputError as error:
            found.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert found, "it hangs"
    return found[0]


@pytest.mark.parametrize("kind", ["pipe", "socket", "nothing"])
def test_what_is_no_file_in_a_folder_of_images_is_named(kind, make, tmp_path):
    folder = write_folder(tmp_path / "pets", ["train/ant", "test/bee"])
    path = make(folder / "train" / "ant" / "x.png", kind)
    for call in (
        lambda: load_images(f"folder:{folder}", "train"),
        lambda: convert_folder(folder, tmp_path / "mine.npz", lambda _: None),
    ):
        assert outcome(call).startswith(f"{path} (class 'ant') {SENTENCES[kind]}")


def test_a_device_in_a_folder_of_images_is_named(make, tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "pets", ["train/ant", "test/bee"])
    path = make(folder / "train" / "ant" / "x.png", "device")
    # Reading it would not end before memory does.
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(f"{path} was read"))
    for call in (
        lambda: load_images(f"folder:{folder}", "train"),
        lambda: convert_folder(folder, tmp_path / "mine.npz", lambda _: None),
    ):
        assert outcome(call) == f"{path} (class 'ant') {SENTENCES['device']}"


def test_an_image_file_of_too_many_bytes_is_not_read(tmp_path):
    folder = write_folder(tmp_path / "pets", ["train/ant", "test/bee"])
    with (folder / "train" / "ant" / "x.png").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match=rf"x\.png \(class 'ant'\) has {2**40} bytes; at most {MAX_FILE_BYTES} are"):
        load_images(f"folder:{folder}", "train")


def test_a_folder_with_the_name_of_an_image_holds_images_of_its_class(tmp_path):
    folder = write_folder(tmp_path / "pets", ["train/x.png", "train/ant/y.png", "test/bee"])
    assert load_images(f"folder:{folder}", "train").class_names == ("ant", "x.png")
