"""Every format that `srwm.data` reads, damaged in many ways: the right result, or a sentence that names the file."""

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from mutations import bounded, mutations
from srwm.data import load_images, read_pack, write_pack
from srwm.data.archives import read_members
from srwm.data.convert import convert_cifar100
from srwm.data.decode import quiet_pillow
from srwm.data.load import read_class
from srwm.data.numpy_pickle import read_numpy_pickle
from srwm.data.official_parts import read_idx
from srwm.data.verify import verify_pack
from srwm.errors import InputError

from .images import make_pack, random_images, write_folder
from .test_archives import FILES, write_zip
from .test_numpy_pickle import DATA, PYTHON_2_TEXT
from .test_pack import arrays_of

COUNT = 1000
"""Damaged copies of each format; the kinds of one share them."""


def check(path, read, sound, *, kinds=1, seed=0):
    """Read damaged copies of a file; each is read or refused."""
    refused, count = 0, COUNT // kinds
    with bounded():
        for damaged in mutations(sound, count, seed):
            path.write_bytes(damaged)
            try:
                read()
            except InputError as error:
                check_sentence(str(error), path)
                refused += 1
    assert refused > 0, "no copy was damaged"


def check_sentence(text, path):
    assert path.name in text
    assert text.isprintable(), ascii(text)
    assert len(text) < 1000
    # Sizes are refused before memory is asked for.
    assert "memory" not in text or "claims" in text, text


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed, None], ids=["stored", "deflated", "written"])
def test_damaged_packs(save, tmp_path):
    path = tmp_path / "pets.npz"
    pack, images = make_pack(path, classes=3, per_class=2, codes=(1, 2, 3))
    if save is None:
        write_pack(pack)
    else:
        save(path, **arrays_of(pack))

    def read():
        found = read_pack(path)
        assert found.class_names == pack.class_names
        for index in range(3):
            assert np.array_equal(read_class(found, index, 3, False, 8), images[index])

    with quiet_pillow():
        check(path, read, path.read_bytes(), kinds=3)


def test_damaged_packs_are_checked(tmp_path):
    path = tmp_path / "pets.npz"
    write_pack(make_pack(path, classes=3, per_class=2, codes=(1, 2, 3))[0])

    def read():
        for problem in verify_pack(path):
            check_sentence(problem, path)

    with bounded():
        for damaged in mutations(path.read_bytes(), COUNT, seed=1):
            path.write_bytes(damaged)
            read()


def picture(kind, mode, **options):
    image = Image.fromarray(random_images(1, 3, 24)[0].transpose(1, 2, 0)).convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def turned():
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


PICTURES = {
    "grey.png": lambda: picture("PNG", "L", optimize=True),
    "palette.png": lambda: picture("PNG", "P", transparency=3),
    "16-bits.png": lambda: picture("PNG", "I;16", transparency=3),
    "alpha.png": lambda: picture("PNG", "RGBA", exif=turned()),
    "colours.jpg": lambda: picture("JPEG", "RGB", exif=turned()),
    "progressive.jpg": lambda: picture("JPEG", "CMYK", progressive=True),
    "grey.jpg": lambda: picture("JPEG", "L", optimize=True),
    "one.gif": lambda: picture("GIF", "P", transparency=3),
    "many.gif": lambda: picture("GIF", "RGB", save_all=True, append_images=[Image.new("RGB", (30, 30))]),
    "colours.bmp": lambda: picture("BMP", "RGB"),
    "palette.bmp": lambda: picture("BMP", "P"),
    "lossless.webp": lambda: picture("WEBP", "RGBA", lossless=True, exif=turned()),
    "lossy.webp": lambda: picture("WEBP", "RGB"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_damaged_pictures(name, tmp_path):
    folder = write_folder(tmp_path / "pets", ["train/ant", "test/bee"], per_class=1)
    path = folder / "train" / "ant" / name

    def read():
        assert load_images(f"folder:{folder}", "train", image_size=8).images.shape == (2, 3, 8, 8)

    kinds = sum(other.endswith(path.suffix) for other in PICTURES)
    check(path, read, PICTURES[name](), kinds=kinds)


def tarred(kind):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as archive:
        for name, content in {**FILES, "a" * 60 + "/" + "b" * 60: b"long", "caf\u00e9": b"accent"}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def gzipped(data):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("a")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


ARCHIVES = {
    "ustar.tar": lambda: tarred(tarfile.USTAR_FORMAT)[:12_000],
    "gnu.tar": lambda: tarred(tarfile.GNU_FORMAT)[:12_000],
    "pax.tar": lambda: tarred(tarfile.PAX_FORMAT)[:12_000],
    "archive.tar.gz": lambda: gzipped(bytes(range(256)) * 8),
    "archive.tar.bz2": lambda: bz2.compress(tarred(tarfile.GNU_FORMAT)),
    "archive.tar.xz": lambda: lzma.compress(tarred(tarfile.GNU_FORMAT)),
}


@pytest.mark.parametrize("name", ["archive.zip", *ARCHIVES])
def test_damaged_archives(name, tmp_path):
    path = tmp_path / name
    sound = ARCHIVES[name]() if name in ARCHIVES else write_zip(path, FILES.items()).read_bytes()

    def read():
        for member, content in read_members(path):
            assert len(content) < 2**20
            # A zip has a sum for each member; a tar has none.
            assert name != "archive.zip" or content == FILES.get(member, content)

    check(path, read, sound, kinds=len(ARCHIVES) if name in ARCHIVES else 1)


@pytest.mark.parametrize("protocol", range(6))
def test_damaged_pickles(protocol, tmp_path):
    path = tmp_path / "cache.pkl"
    check(path, lambda: read_numpy_pickle(path), pickle.dumps(DATA, protocol), kinds=7, seed=protocol)


def test_damaged_pickles_of_python_2(tmp_path):
    path = tmp_path / "cache.pkl"
    check(path, lambda: read_numpy_pickle(path), PYTHON_2_TEXT, kinds=7)


def test_values_of_other_kinds_in_cifar_100s_archive(tmp_path):
    """Damage that is a sound pickle, with something else in it than was expected."""
    names = {"fine_label_names": ["a", "b"], "coarse_label_names": ["c"]}
    part = {"data": random_images(1, 3, 32).repeat(2, 0).reshape(2, -1), "fine_labels": [0, 1], "coarse_labels": [0, 0]}
    others = [None, 3, "text", [], [None], [1.5, "a"], [[0], [1]], {}, np.zeros(2), np.zeros((2, 3072)), [10**30, 0]]
    path = tmp_path / "cifar.tar.gz"
    with bounded():
        for target in ("meta", "train", "test"):
            for key in names if target == "meta" else part:
                for other in others:
                    content = {"meta": dict(names), "train": dict(part), "test": dict(part)}
                    content[target][key] = other
                    write_zip(path, [(f"cifar/{name}", pickle.dumps(value)) for name, value in content.items()])
                    with pytest.raises(InputError) as caught:
                        convert_cifar100([path], tmp_path / "cifar100.npz", lambda _: None)
                    assert str(caught.value).isprintable()


@pytest.mark.parametrize("packed", [True, False], ids=["the file", "what is in it"])
def test_damaged_files_of_numbers(packed, tmp_path):
    path = tmp_path / "train-images-idx3-ubyte.gz"
    numbers = np.arange(3 * 28 * 28, dtype=np.int64).astype(np.uint8).reshape(3, 28, 28)
    sound = bytes((0, 0, 8, 3)) + b"".join(size.to_bytes(4, "big") for size in numbers.shape) + numbers.tobytes()
    refused = 0
    with bounded():
        for damaged in mutations(gzip.compress(sound) if packed else sound, COUNT // 2, 9):
            path.write_bytes(damaged if packed else gzip.compress(damaged, 1))
            try:
                assert read_idx(path, 3).ndim == 3
            except InputError as error:
                check_sentence(str(error), path)
                refused += 1
    assert refused > 10


def test_damaged_packs_with_official_parts(tmp_path):
    path = tmp_path / "parts.npz"
    pack, _ = make_pack(path, classes=2, per_class=7, codes=(1, 3))
    parts = np.array([1, 1, 1, 1, 1, 1, 3] * 2, np.uint8)
    write_pack(replace(pack, splits={}, part_of_file=parts, count_of_file=np.ones(14, np.int64)))

    def read():
        found = read_pack(path)
        for part in ("train", "test"):
            images = load_images("parts", part, folder=tmp_path, image_size=8)
            assert len(images.images) == int(images.counts.sum())
        assert found.num_images == 14

    check(path, read, path.read_bytes(), kinds=2, seed=10)
