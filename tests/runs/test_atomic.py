"""Files that are there whole or not at all."""

import os

import pytest

from srwm.errors import RunError
from srwm.runs.atomic import write_atomically, written_whole

from .full_disk import FullDisk, files_in


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 1000])
def test_a_file_holds_what_was_written(tmp_path, data):
    (tmp_path / "file").write_bytes(b"old and longer than x")
    write_atomically(tmp_path / "file", data)
    assert files_in(tmp_path) == {"file": data}


def test_bytes_that_the_system_takes_in_parts_all_arrive(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    write_atomically(tmp_path / "file", b"0123456789" * 5)
    assert (tmp_path / "file").read_bytes() == b"0123456789" * 5


@pytest.mark.parametrize("space", [0, 1, 9])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, space):
    (tmp_path / "file").write_bytes(b"old")
    FullDisk(monkeypatch, space)
    with pytest.raises(RunError, match=r"file cannot be written: the disk is full .*--resume"):
        write_atomically(tmp_path / "file", b"0123456789")
    assert files_in(tmp_path) == {"file": b"old"}


def test_a_disk_that_fails_when_it_is_asked_to_keep_the_bytes_leaves_the_old_file(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(5, "Input/output error")

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RunError, match="file cannot be written: Input/output error"):
        write_atomically(tmp_path / "file", b"new")
    assert files_in(tmp_path) == {"file": b"old"}


def test_an_interrupt_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    def interrupt(descriptor, data):
        raise KeyboardInterrupt

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", b"new")
    assert files_in(tmp_path) == {"file": b"old"}


def test_a_missing_folder_gets_a_sentence(tmp_path):
    with pytest.raises(RunError, match="cannot be written: No such file or directory"):
        write_atomically(tmp_path / "absent" / "file", b"")


def test_the_bytes_reach_the_disk_before_the_name_does(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: calls.append("fsync") or fsync(descriptor))
    monkeypatch.setattr(os, "replace", lambda *names: calls.append("replace") or replace(*names))
    write_atomically(tmp_path / "file", b"new")
    assert calls == ["fsync", "replace", "fsync"]


def test_an_error_before_anything_was_written_is_told_as_it_is(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), written_whole(tmp_path / "file"):
        raise ZeroDivisionError
    assert files_in(tmp_path) == {"file": b"old"}


def lowest_free_descriptor():
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.close(descriptor)
    return descriptor


def test_no_file_stays_open(tmp_path):
    before = lowest_free_descriptor()
    write_atomically(tmp_path / "file", b"new")
    assert lowest_free_descriptor() == before


def test_a_file_belongs_to_whoever_the_umask_says_and_is_no_program(tmp_path):
    umask = os.umask(0)
    try:
        write_atomically(tmp_path / "file", b"new")
    finally:
        os.umask(umask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RunError, match="pipe cannot be written: it is not a file; expected the name of one"):
        write_atomically(tmp_path / "pipe", b"data")
    assert (tmp_path / "pipe").is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
