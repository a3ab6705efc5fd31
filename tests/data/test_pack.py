import io
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srwm.data import _npz as npz
from srwm.data import read_pack, write_pack
from srwm.errors import InputError, RunError

from .images import make_pack


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.npz"


def arrays_of(pack):
    return {
        "files": pack.files,
        "offsets": pack.offsets,
        "tiles": np.array(pack.tiles, np.int32),
        "class_of_file": pack.class_of_file.astype(np.int32),
        "class_name": np.array(pack.class_names),
        "class_group": np.array(pack.class_groups),
        "split_default": pack.splits["default"],
        "source": np.array("tests"),
        "licence": np.array("none"),
    }


def test_a_pack_comes_back_as_it_was_written(path):
    pack, _ = make_pack(path)
    write_pack(pack)
    again = read_pack(path)
    assert np.array_equal(again.files, pack.files)
    assert np.array_equal(again.offsets, pack.offsets)
    assert np.array_equal(again.class_of_file, pack.class_of_file)
    assert np.array_equal(again.splits["default"], pack.splits["default"])
    assert (again.class_names, again.tiles, again.source, again.licence) == (
        pack.class_names,
        pack.tiles,
        "tests",
        "none",
    )
    assert (again.num_classes, again.num_files, again.num_images) == (6, 24, 24)


def test_equal_packs_are_equal_files(tmp_path):
    for name in ("a.npz", "b.npz"):
        write_pack(make_pack(tmp_path / name)[0])
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_reads_a_pack_without_pickles(path):
    pack, _ = make_pack(path)
    write_pack(pack)
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["class_name"].tolist() == list(pack.class_names)
        assert arrays["files"].dtype == np.uint8


def test_a_pack_that_numpy_wrote_is_read_whatever_else_it_holds(path):
    np.savez_compressed(path, **arrays_of(make_pack(path)[0]), notes=np.array([1]))
    assert read_pack(path).num_classes == 6


def test_a_full_disk_leaves_the_old_pack_and_nothing_else(path, monkeypatch):
    pack, _ = make_pack(path)
    write_pack(pack)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match=r"a.npz could not be written: No space left on device"):
        write_pack(replace(pack, source="new"))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


CHANGES = [
    ({"offsets": np.array([0, 5])}, "2 offsets for 24 files"),
    ({"offsets": np.arange(25)}, "offsets do not rise"),
    ({"offsets": np.zeros(25, np.int64)}, "offsets do not rise"),
    ({"offsets": np.zeros(25)}, "'offsets' is float64"),
    ({"tiles": np.array([0, 1])}, "0 x 1 images"),
    ({"tiles": np.array([1])}, "'tiles' is int64"),
    ({"class_of_file": np.full(24, 6)}, "outside 0 to 5"),
    ({"class_of_file": np.full(24, -1)}, "outside 0 to 5"),
    ({"class_of_file": np.zeros(24, np.int32)}, "'class1' has no image"),
    ({"class_name": np.array(["a"] * 6)}, "'a' is named twice"),
    ({"class_name": np.arange(6)}, "'class_name' is int64"),
    ({"class_group": np.array(["a"])}, "6 class names but 1 groups"),
    ({"class_group": np.array([], "U1")}, "6 class names but 0 groups"),
    ({"split_default": np.full(6, 4, np.uint8)}, "split 'default'"),
    ({"split_default": np.ones(5, np.uint8)}, "split 'default'"),
    ({"split_default": np.ones(6, np.int64)}, "'split_default' is int64"),
    ({"files": np.zeros(4, np.int16)}, "'files' is int16"),
]


@pytest.mark.parametrize(("changes", "problem"), CHANGES, ids=[problem for _, problem in CHANGES])
def test_numbers_that_make_no_sense_are_named(path, changes, problem):
    np.savez(path, **{**arrays_of(make_pack(path)[0]), **changes})
    with pytest.raises(InputError, match=problem) as caught:
        read_pack(path)
    assert str(path) in str(caught.value)


def test_missing_parts_are_named(path):
    np.savez(path, files=np.zeros(4, np.uint8), offsets=np.zeros(2, np.int64))
    with pytest.raises(InputError, match=r"a.npz is not a pack of images: it lacks tiles, class_of_file"):
        read_pack(path)


def test_a_missing_file_is_named(path):
    with pytest.raises(InputError, match=r"a.npz does not exist"):
        read_pack(path)


def test_pickled_objects_are_refused_and_not_run(path, tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "canary"), "w"))

    np.savez(path, **{**arrays_of(make_pack(path)[0]), "class_name": np.array([Evil()] * 6, object)})
    with pytest.raises(InputError, match="Python objects, which are never read"):
        read_pack(path)
    assert not (tmp_path / "canary").exists()


def test_a_name_that_is_there_twice_is_refused(path):
    np.savez(path, **arrays_of(make_pack(path)[0]))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("tiles.npy", b"")
    with pytest.raises(InputError, match="'tiles' twice"):
        read_pack(path)


def test_a_shape_larger_than_its_bytes_asks_for_no_memory(path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("files.npy", buffer.getvalue())
    with pytest.raises(InputError, match="holds 0 bytes"):
        read_pack(path)


def test_an_array_larger_than_the_limit_is_not_unpacked(path, monkeypatch):
    write_pack(make_pack(path)[0])
    monkeypatch.setattr(npz, "MAX_BYTES", 100)
    with pytest.raises(InputError, match="more than 100 are not read"):
        read_pack(path)


def test_arrays_that_are_too_large_together_are_not_unpacked(path, monkeypatch):
    write_pack(make_pack(path)[0])
    with zipfile.ZipFile(path) as archive:
        sizes = [info.file_size for info in archive.infolist()]
    monkeypatch.setattr(npz, "MAX_BYTES", sum(sizes))
    read_pack(path)
    monkeypatch.setattr(npz, "MAX_BYTES", sum(sizes) - 1)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match=f"its arrays claim {sum(sizes)} bytes; more than {sum(sizes) - 1} are not"):
        read_pack(path)


def test_arrays_larger_than_the_memory_are_not_unpacked(path, monkeypatch):
    write_pack(make_pack(path)[0])
    monkeypatch.setattr(npz, "memory_bytes", lambda: 100)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match="this machine's memory has 100"):
        read_pack(path)


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (8, b"\x01\x00", "'files.npy' is encrypted"),
        (10, b"\x0c\x00", r"'files.npy' is compressed by method 12; expected 0 \(none\) or 8 \(deflate\)"),
        (10, b"\x0e\x00", "'files.npy' is compressed by method 14"),
        (20, b"\xf0\xff\xff\xff", r"'files.npy' claims [0-9]* bytes, more than the file can hold|broken"),
        (24, b"\xf0\xff\xff\xff", "'files.npy' claims 4294967280 bytes, more than the file can hold"),
    ],
)
def test_what_a_directory_cannot_truly_say_is_refused(path, place, value, problem):
    np.savez_compressed(path, **arrays_of(make_pack(path)[0]))
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"files.npy") - 46
    assert data[entry : entry + 4] == b"PK\x01\x02"
    data[entry + place : entry + place + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(InputError, match=problem):
        read_pack(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused_before_they_unpack_to_gigabytes(method, path):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("files.npy", bytes(10**6))
    with pytest.raises(InputError, match=f"compressed by method {method}"):
        read_pack(path)


def test_a_damaged_compressed_array_is_named(path):
    np.savez_compressed(path, **arrays_of(make_pack(path)[0]))
    data = bytearray(path.read_bytes())
    data[60:64] = b"\xff" * 4
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.npz is broken at 'files'"):
        read_pack(path)


def header(text, version=b"\x01\x00", size=None):
    return b"\x93NUMPY" + version + len(text if size is None else bytes(size)).to_bytes(2, "little") + text


PLAIN = b"{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is no NumPy array"),
        (b"\x93NUMPY", "is no NumPy array"),
        (b"no array", "is no NumPy array"),
        (header(PLAIN, b"\x03\x00"), r"unknown format number \(3, 0\)"),
        (header(PLAIN, size=200), "has not the header of a plain array"),
        (header(PLAIN.replace(b"3", b"-3")), "has not the header"),
        (header(PLAIN.replace(b"3", b"9" * 30)), "has not the header"),
        (header(PLAIN.replace(b"(3,)", b"(" * 3000)), "has not the header"),
        (header(PLAIN.replace(b"3", b"9" * 18) + b" " * 9), f"says shape .{'9' * 18},. of uint8, but holds 0 bytes"),
        (header(PLAIN.replace(b"|u1", b"<U0").replace(b"3", b"9" * 18)), "holds 0 bytes"),
        (header(PLAIN.replace(b"|u1", b"|V9")), "holds '|V9'; expected numbers or texts"),
        (header(PLAIN.replace(b"|u1", b"u1,u1")), "holds 'u1,u1'; expected"),
        (header(PLAIN.replace(b"|u1", b"<i3") + b"\n") + b"123", "is broken at 'files'"),
        (header(PLAIN.replace(b"'|u1'", b"[('a', '|u1')]")), "has not the header"),
        (header(PLAIN.replace(b"(3,)", b"(" + b"1," * 65 + b")")) + b"1", "is broken at 'files'"),
        (header(PLAIN.replace(b"False", b"__import__('os')")), "has not the header"),
    ],
)
def test_a_header_that_no_plain_array_has_is_refused(content, problem, path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("files.npy", content)
    with pytest.raises(InputError, match=problem) as caught:
        read_pack(path)
    assert str(path) in str(caught.value)


def test_a_directory_that_claims_gigabytes_asks_for_no_memory(path):
    # A zip whose end says that its directory is as long as the file, which is sparse.
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 2**30, 0, 0)
    with path.open("wb") as file:
        file.truncate(2**30)
        file.seek(2**30)
        file.write(end)
    with pytest.raises(InputError, match=f"a header of it claims {2**30} bytes"):
        read_pack(path)


@given(data=st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_bytes_are_no_pack(data, tmp_path):
    path = tmp_path / "random.npz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"random.npz"):
        read_pack(path)


@given(cut=st.integers(0, 10**6), place=st.integers(0, 10**6), byte=st.integers(0, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_pack_is_read_or_refused_by_name(cut, place, byte, tmp_path):
    path = tmp_path / "damaged.npz"
    write_pack(make_pack(path, classes=3, per_class=1, codes=(1, 2, 3))[0])
    data = bytearray(path.read_bytes())
    data[place % len(data)] = byte
    path.write_bytes(data[: len(data) - cut % 3000 if cut % 2 else len(data)])
    try:
        pack = read_pack(path)
    except InputError as error:
        assert "damaged.npz" in str(error)  # noqa: PT017
    else:
        assert pack.num_classes == 3
