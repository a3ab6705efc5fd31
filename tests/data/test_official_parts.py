"""Data sets that come in official training and test images: how they are packed, read, split and checked."""

import gzip
import io
import pickle
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from srwm.data import has_official_parts, load_images, read_pack, write_pack
from srwm.data.fetch import _CONVERTERS, ARCHIVES
from srwm.data.official_parts import convert_cifar10, convert_fashion_mnist, convert_mnist, read_idx
from srwm.data.verify import verify_pack
from srwm.errors import InputError

from .images import random_images
from .test_convert import quiet

COUNTS = {"train": 12, "t10k": 3}
"""Images of each class in the small archives."""


def idx(array):
    """A gzipped IDX file of bytes."""
    head = bytes((0, 0, 8, array.ndim)) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return gzip.compress(head + array.tobytes())


def archives(folder, counts=COUNTS):
    """Small archives in MNIST's form, and the images of each part, [class, image, 28, 28]."""
    made, images = [], {}
    for number, (word, per_class) in enumerate(counts.items()):
        images[word] = random_images(10 * per_class, 1, 28, seed=number).reshape(10, per_class, 28, 28)
        # The classes take turns, as they do not lie one after the other in the original.
        content = {
            f"{word}-images-idx3-ubyte.gz": images[word].swapaxes(0, 1).reshape(-1, 28, 28),
            f"{word}-labels-idx1-ubyte.gz": np.tile(np.arange(10, dtype=np.uint8), per_class),
        }
        for name, array in content.items():
            (folder / name).write_bytes(idx(array))
            made.append(folder / name)
    return made, images


@pytest.fixture
def mnist(tmp_path, empty_data_folder):
    """A small pack in the place of MNIST's, and its images."""
    made, images = archives(tmp_path)
    write_pack(convert_mnist(made, empty_data_folder / "mnist.npz", quiet))
    return images


def test_training_and_test_images_of_every_class_are_kept_apart(mnist):
    train, validation, test = (load_images("mnist", split) for split in ("train", "validation", "test"))
    assert train.class_names == validation.class_names == test.class_names == tuple("0123456789")
    # Of the training images the last sixth validates.
    assert (train.counts.tolist(), validation.counts.tolist(), test.counts.tolist()) == ([10] * 10, [2] * 10, [3] * 10)
    both = torch.cat([part.images.reshape(10, -1, 28, 28) for part in (train, validation)], dim=1)
    assert np.array_equal(both.numpy(), mnist["train"])
    assert np.array_equal(test.images.reshape(10, -1, 28, 28).numpy(), mnist["t10k"])


def test_sources_whose_classes_are_split_have_no_official_parts(mnist):
    assert has_official_parts("mnist")
    assert not has_official_parts("strokes")
    assert not has_official_parts("folder:anywhere")


def test_a_pack_with_parts_comes_back_as_it_was_written(mnist, empty_data_folder):
    pack = read_pack(empty_data_folder / "mnist.npz")
    assert (pack.num_images, pack.count_of(3), pack.count_of(3, 1), pack.count_of(3, 3)) == (150, 15, 12, 3)
    write_pack(replace(pack, path=empty_data_folder / "again.npz"))
    assert (empty_data_folder / "again.npz").read_bytes() == (empty_data_folder / "mnist.npz").read_bytes()
    assert verify_pack(empty_data_folder / "mnist.npz") == []
    # A pack of one's own with parts needs no name of a split.
    own = load_images("again", "test", image_size=28, channels=1)
    assert torch.equal(own.images, load_images("mnist", "test").images)


def test_fashion_mnist_names_its_classes(tmp_path, empty_data_folder):
    made, _ = archives(tmp_path)
    pack = convert_fashion_mnist(made, empty_data_folder / "fashion-mnist.npz", quiet)
    assert pack.class_names[::9] == ("T-shirt", "Ankle boot")
    assert pack.licence == "MIT"


def test_cifar_10_becomes_a_pack(tmp_path, empty_data_folder):
    images = random_images(120, 3, 32)
    content = {f"data_batch_{1 + i}": images[20 * i : 20 * (i + 1)] for i in range(5)} | {"test_batch": images[100:]}
    path = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        parts = {
            name: {b"data": data.reshape(20, -1), b"labels": list(range(10)) * 2} for name, data in content.items()
        }
        parts["batches.meta"] = {b"label_names": [f"class{i}".encode() for i in range(10)]}
        for name, part in parts.items():
            data = pickle.dumps(part, 2)
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    write_pack(convert_cifar10([path], empty_data_folder / "cifar10.npz", quiet))
    train, test = load_images("cifar-10", "train"), load_images("cifar-10", "test")
    assert train.class_names[:2] == ("class0", "class1")
    assert np.array_equal(
        test.images.reshape(10, 2, 3, 32, 32).numpy(), images[100:].reshape(2, 10, 3, 32, 32).swapaxes(0, 1)
    )
    every = images[:100].reshape(10, 10, 3, 32, 32).swapaxes(0, 1)
    assert np.array_equal(train.images.reshape(10, 9, 3, 32, 32).numpy(), every[:, :9])


def test_other_archives_are_not_taken_for_these(tmp_path):
    made, _ = archives(tmp_path)
    with pytest.raises(InputError, match=r"expected t10k-images-idx3-ubyte\.gz"):
        convert_mnist(made[:2], tmp_path / "mnist.npz", quiet)
    path = tmp_path / "other.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("hello"))
    with pytest.raises(InputError, match="is not CIFAR-10's archive for Python"):
        convert_cifar10([path], tmp_path / "cifar10.npz", quiet)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"no gzip at all", "is not a gzipped file that can be read"),
        (gzip.compress(b""), "is not an IDX file of bytes with 1 axes"),
        (gzip.compress(bytes((0, 0, 8, 3)) + bytes(12)), "is not an IDX file of bytes with 1 axes"),
        (gzip.compress(bytes((0, 0, 8, 1)) + (5).to_bytes(4, "big") + b"abc"), r"holds 3 bytes; its shape \[5\]"),
        (idx(np.zeros(4, np.uint8))[:-9], "is not a gzipped file that can be read"),
    ],
    # The bytes of a gzipped file hold the time at which it was made.
    ids=["no gzip", "empty", "too many axes", "too few bytes", "cut off"],
)
def test_broken_files_of_numbers_get_a_sentence(tmp_path, data, sentence):
    path = tmp_path / "labels.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=sentence):
        read_idx(path, 1)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("srwm.data.official_parts._MOST_BYTES", 10)
    path = tmp_path / "labels.gz"
    path.write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(InputError, match="it unpacks to more than 10 bytes"):
        read_idx(path, 1)


def test_labels_that_do_not_fit_their_images_are_refused(tmp_path):
    made, _ = archives(tmp_path)
    made[1].write_bytes(idx(np.full(120, 10, np.uint8)))
    with pytest.raises(InputError, match="120 images and 120 labels; expected one label from 0 to 9"):
        convert_mnist(made, tmp_path / "mnist.npz", quiet)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"part_of_file": np.array([1] * 20, np.uint8)}, "class '0' has no test image"),
        ({"part_of_file": np.array([2] * 20, np.uint8)}, "whether it is of part 1 or 3"),
        ({"count_of_file": np.array([0] * 20)}, "holds 1 to 100 images"),
        ({"count_of_file": np.array([5] * 19)}, "holds 1 to 100 images"),
    ],
)
def test_parts_that_make_no_sense_are_broken(mnist, empty_data_folder, change, sentence):
    pack = read_pack(empty_data_folder / "mnist.npz")
    assert pack.num_files == 20
    with pytest.raises(InputError, match=sentence):
        replace(pack, **change)


def test_a_class_with_too_few_training_images_cannot_validate(tmp_path, empty_data_folder):
    made, _ = archives(tmp_path, {"train": 5, "t10k": 1})
    write_pack(convert_mnist(made, empty_data_folder / "mnist.npz", quiet))
    with pytest.raises(InputError, match=r"class '0' of .* has 5 training images; expected at least 6"):
        load_images("mnist", "train")


def test_each_of_them_can_be_fetched():
    assert {"mnist.npz", "fashion-mnist.npz", "cifar10.npz"} <= set(ARCHIVES)
    assert set(ARCHIVES) == set(_CONVERTERS)
