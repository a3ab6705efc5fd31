"""Only files are read, and no more of them than is expected."""

import os
from pathlib import Path

import pytest
import torch

from srwm.errors import InputError
from srwm.runs.checkpoint import latest_checkpoint, load_checkpoint, save_checkpoint
from srwm.runs.reading import open_file, read_file

from .no_files import SENTENCES, outcome, put

WEIGHTS = {"weights": {"w": torch.ones(3)}}


def opened(path):
    with open_file(path) as file:
        return file.read()


@pytest.mark.parametrize("kind", list(SENTENCES))
def test_only_files_are_opened(kind, tmp_path):
    path = put(tmp_path / "x.png", kind)
    assert outcome(lambda: opened(path)) == f"{path} {SENTENCES[kind]}"
    assert outcome(lambda: read_file(path, 10, "the picture")) == f"the picture {SENTENCES[kind]}"


def test_a_pipe_that_takes_a_files_place_after_the_first_look_keeps_no_reader_waiting(tmp_path, monkeypatch):
    file, pipe = tmp_path / "file", put(tmp_path / "x.png", "pipe")
    file.write_bytes(b"1")
    looked_at = os.stat(file)
    monkeypatch.setattr(os, "stat", lambda *_: looked_at)
    assert outcome(lambda: opened(pipe)) == f"{pipe} is a pipe; expected a file"


def test_a_file_is_read_also_through_a_link(tmp_path):
    (tmp_path / "a").write_bytes(b"some bytes")
    (tmp_path / "link").symlink_to("a")
    assert read_file(tmp_path / "link", 10) == opened(tmp_path / "link") == b"some bytes"


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "a"
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(InputError, match=rf"a has {2**40:,} bytes; at most 1,000 are read"):
        read_file(path, 1000)
    with pytest.raises(InputError, match="a is too large for the memory of this machine"), open_file(path):
        raise MemoryError


def test_a_file_whose_size_the_system_does_not_say_is_read_to_its_end():
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    data = read_file(path, 2**20)
    assert data.startswith(b"Name:")
    assert data.endswith(b"\n")
    with pytest.raises(InputError, match="status has more than 100 bytes; at most so many are read"):
        read_file(path, 100)


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"1")
    before = os.stat(path)
    path.write_bytes(b"1234567890")
    monkeypatch.setattr(os, "fstat", lambda _: before)
    assert read_file(path, 10) == b"1234567890"
    with pytest.raises(InputError, match="a has more than 9 bytes"):
        read_file(path, 9)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere", "nowhere does not exist"),
        ("a" * 5000, "cannot be read: File name too long"),
        ("a\0b", "cannot be the name of a file"),
        ("file/below", "cannot be read: Not a directory"),
    ],
)
def test_what_is_not_there_is_named(name, problem, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=problem):
        read_file(tmp_path / name, 10)


def test_what_the_system_says_while_a_file_is_read_is_a_sentence():
    with pytest.raises(InputError, match="/proc/self/mem cannot be read: Input/output error"):
        opened(Path("/proc/self/mem"))


@pytest.mark.parametrize("name", ["meta.json", "weights.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "nothing", "folder"])
def test_what_is_no_file_is_named_and_the_checkpoint_before_is_taken(tmp_path, caplog, name, kind):
    save_checkpoint(tmp_path, 10, WEIGHTS, {})
    path = save_checkpoint(tmp_path, 20, WEIGHTS, {})
    (path / name).unlink()
    put(path / name, kind)
    assert outcome(lambda: load_checkpoint(path)) == f"{path / name} {SENTENCES[kind]}"
    assert outcome(lambda: latest_checkpoint(tmp_path)).step == 10
    assert f"{path / name} {SENTENCES[kind]}" in caplog.text


def test_tensors_without_end_are_not_read(tmp_path, monkeypatch):
    path = save_checkpoint(tmp_path, 20, WEIGHTS, {})
    os.truncate(path / "weights.safetensors", 2**40)
    with pytest.raises(InputError, match=rf"weights\.safetensors is broken: it has {2**40:,} bytes; expected "):
        load_checkpoint(path)
    (path / "weights.safetensors").unlink()
    put(path / "weights.safetensors", "device")
    # Reading it would not end before memory does.
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail(f"{path} was read"))
    with pytest.raises(InputError, match=rf"weights\.safetensors {SENTENCES['device']}"):
        load_checkpoint(path)
