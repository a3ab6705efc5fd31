import bz2
import gzip
import io
import lzma
import os
import struct
import tarfile
import tracemalloc
import warnings
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srwm.data.archives import MAX_BYTES, read_members
from srwm.errors import InputError

FILES = {"a/1.png": b"one", "a/2.png": b"", "b/c/3.png": b"three" * 1000}


def write_zip(path, members, change=None):
    """A zip of names and contents; `change` may alter what the archive says about each."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # Duplicate names are meant.
        for name, content in members:
            info = zipfile.ZipInfo("x")
            info.filename = name  # As it is: the constructor would tidy it up.
            if change:
                change(info)
            archive.writestr(info, content)
    return path


def write_tar(path, members, change=None):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if change:
                change(info)
            archive.addfile(info, io.BytesIO(content))
    return path


WRITERS = pytest.mark.parametrize("write", [write_zip, write_tar])


@WRITERS
def test_files_come_one_by_one_and_folders_do_not(write, tmp_path):
    path = write(tmp_path / "archive", FILES.items())
    assert dict(read_members(path)) == FILES


def test_folders_are_passed_over(tmp_path):
    def as_folder(info):
        info.type = tarfile.DIRTYPE

    zipped = write_zip(tmp_path / "zip", [("a/", b""), ("a/b", b"1")])
    assert dict(read_members(zipped)) == {"a/b": b"1"}
    assert dict(read_members(write_tar(tmp_path / "tar", [("a", b"")], as_folder))) == {}


@WRITERS
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../x", "leads out"),
        ("a/../../x", "leads out"),
        ("a/..", "leads out"),
        ("..\\x", "leads out"),
        ("a\\..\\..\\x", "leads out"),
        ("/etc/x", "absolute path"),
        ("\\x", "absolute path"),
        ("C:/x", "absolute path"),
        ("c:x", "absolute path"),
        ("a\nb", "no proper name"),
    ],
)
def test_names_that_lead_elsewhere_refuse_the_archive_before_its_first_member(write, name, problem, tmp_path):
    path = write(tmp_path / "archive", [*FILES.items(), (name, b"evil")])
    with pytest.raises(InputError, match=f"archive is refused: its member .* {problem}"):
        next(read_members(path))
    assert list(tmp_path.iterdir()) == [path]


@WRITERS
@pytest.mark.parametrize("twice", ["a/1.png", "./a/1.png", "a//1.png"])
def test_a_name_that_is_there_twice_refuses_the_archive(write, twice, tmp_path):
    path = write(tmp_path / "archive", [*FILES.items(), (twice, b"other")])
    with pytest.raises(InputError, match="is there twice"):
        next(read_members(path))


def test_a_link_in_a_zip_refuses_it(tmp_path):
    def as_link(info):
        info.create_system = 3
        info.external_attr = 0o120777 << 16

    path = write_zip(tmp_path / "archive", [("link", b"/etc/passwd")], as_link)
    with pytest.raises(InputError, match="'link' is a link or a device"):
        next(read_members(path))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_refuse_it(kind, tmp_path):
    def change(info):
        info.type, info.linkname = kind, "../x"

    path = write_tar(tmp_path / "archive", [("a", b"")], change)
    with pytest.raises(InputError, match="'a' is a link or a device"):
        next(read_members(path))


def test_an_encrypted_member_refuses_the_archive(tmp_path):
    path = write_zip(tmp_path / "archive", [("a", b"1")])
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="'a' is encrypted"):
        next(read_members(path))


@WRITERS
def test_too_many_members_or_bytes_refuse_the_archive(write, tmp_path):
    path = write(tmp_path / "archive", FILES.items())
    with pytest.raises(InputError, match="more than 2 members"):
        next(read_members(path, max_members=2))
    with pytest.raises(InputError, match="more than 5000 bytes"):
        next(read_members(path, max_bytes=5000))
    assert dict(read_members(path, max_members=3, max_bytes=5003)) == FILES


def test_a_zip_that_says_it_unpacks_to_gigabytes_is_refused(tmp_path):
    path = write_zip(tmp_path / "archive", [("a", b"0" * 99), ("b", b"0" * 99)])
    data = path.read_bytes()
    for place in [place for place in range(len(data)) if data.startswith(b"PK\x01\x02", place)]:
        data = data[: place + 24] + struct.pack("<I", 2**32 - 2) + data[place + 28 :]
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"unpacks to more than {MAX_BYTES} bytes"):
        next(read_members(path))


def test_a_zip_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    path = write_zip(tmp_path / "archive", [("a", b"0" * 100_000)])
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 100_000), struct.pack("<I", 100)))
    with pytest.raises(InputError, match="not an archive that can be read"):
        list(read_members(path))


def test_a_tar_that_says_it_unpacks_to_gigabytes_is_refused_at_its_header(tmp_path):
    info = tarfile.TarInfo("bomb")
    info.size = 10 * 2**30
    path = tmp_path / "archive"
    path.write_bytes(gzip.compress(info.tobuf() + bytes(1024)))
    with pytest.raises(InputError, match=f"unpacks to more than {MAX_BYTES} bytes"):
        next(read_members(path))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_whose_compression_knows_no_bounds_is_refused(method, tmp_path):
    path = tmp_path / "archive"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a", bytes(10**6))
    with pytest.raises(InputError, match=f"'a' is compressed by method {method}; expected none or deflate"):
        next(read_members(path))


def test_a_zip_that_unpacks_to_more_than_it_says_takes_no_more_memory_than_it_says(tmp_path):
    size = 10**8
    path = write_zip(tmp_path / "archive", [("a", bytes(size))])
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", size), struct.pack("<I", 100)))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="not an archive that can be read"):
            list(read_members(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 10


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
@pytest.mark.parametrize("size", [10**6, 10 * 2**30])
def test_a_tar_with_a_header_of_gigabytes_asks_for_no_memory(kind, size, tmp_path):
    info = tarfile.TarInfo("long")
    info.type, info.size = kind, size
    path = tmp_path / "archive"
    path.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(10**6 + 512)))
    with pytest.raises(InputError, match="archive is broken: a header of it claims"):
        next(read_members(path))


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, b"?"])
def test_a_tar_that_leads_back_to_its_beginning_is_refused(kind, tmp_path):
    header = bytearray(tarfile.TarInfo("a").tobuf())
    header[156:157] = kind
    header[124:136] = b"\xff" * 10 + (-1024 % 65536).to_bytes(2, "big")  # A size below zero, in binary.
    header[148:156] = b"%06o\0 " % (256 + sum(header[:148]) + sum(header[156:512]))
    path = tmp_path / "archive"
    path.write_bytes(header + bytes(2**15))
    with pytest.raises(InputError, match=r"has -1024 bytes|is broken: a header|not an archive|is a link or a device"):
        list(read_members(path))


@pytest.mark.parametrize(("suffix", "opener"), [("gz", gzip.open), ("bz2", bz2.open), ("xz", lzma.open), ("", open)])
def test_a_tar_is_known_by_its_first_bytes(suffix, opener, tmp_path):
    path = tmp_path / f"archive.{suffix}"
    with opener(path, "wb") as file, tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    assert dict(read_members(path)) == FILES


def test_a_pipe_is_no_archive(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is a pipe; expected a file"):
        next(read_members(tmp_path / "pipe"))


def test_a_missing_archive_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere does not exist"):
        next(read_members(tmp_path / "nowhere"))


@given(
    data=st.binary(max_size=100), head=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08", b"BZh9"])
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_bytes_hold_no_file(data, head, tmp_path):
    path = tmp_path / "random"
    path.write_bytes(head + data)
    try:
        assert list(read_members(path)) == []
    except InputError as error:
        assert "random is not an archive" in str(error)  # noqa: PT017


@WRITERS
@given(place=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.integers(0, 400) | st.none())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_archives_are_read_or_refused_by_name(write, place, byte, cut, tmp_path):
    path = write(tmp_path / "damaged", FILES.items())
    data = bytearray(path.read_bytes())
    data[place % len(data)] = byte
    path.write_bytes(data[:cut])
    try:
        for name, content in read_members(path):
            assert isinstance(name, str)
            assert isinstance(content, bytes)
    except InputError as error:
        assert "damaged" in str(error)  # noqa: PT017
