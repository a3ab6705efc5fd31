import io
import pickle
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from srwm.data import load_images, write_pack
from srwm.data.convert import convert_cifar100, convert_folder, convert_mini_imagenet, convert_omniglot
from srwm.data.load import read_class
from srwm.errors import InputError

from .images import encoded, random_images, write_folder


def quiet(_):
    pass


def omniglot_archives(folder, drawers=20):
    """Two small archives in Omniglot's form, and the drawings in them by (alphabet, character, drawer)."""
    drawings = {}
    for part, alphabets in (("background", ["Hebrew", "Greek"]), ("evaluation", ["ULOG", "Angelic"])):
        with zipfile.ZipFile(folder / f"images_{part}.zip", "w") as archive:
            archive.writestr(f"images_{part}/", b"")
            for number, (alphabet, character) in enumerate(
                (alphabet, character) for alphabet in alphabets for character in ("character02", "character01")
            ):
                for drawer in range(drawers, 0, -1):
                    image = np.where(random_images(1, 1, 15, seed=number * 100 + drawer)[0] > 127, 255, 0)
                    drawings[alphabet, character, drawer] = image.astype(np.uint8)
                    name = f"images_{part}/{alphabet}/{character}/{number:04}_{drawer:02}.png"
                    archive.writestr(name, encoded(image.astype(np.uint8)))
    return [folder / "images_background.zip", folder / "images_evaluation.zip"], drawings


def test_omniglot_becomes_a_pack_in_the_order_of_alphabets_characters_and_drawers(tmp_path):
    archives, drawings = omniglot_archives(tmp_path)
    pack = convert_omniglot(archives, tmp_path / "omniglot.npz", quiet)
    wanted = [
        (group, name) for group in ("Greek", "Hebrew", "Angelic", "ULOG") for name in ("character01", "character02")
    ]
    assert list(zip(pack.class_groups, pack.class_names, strict=True)) == wanted
    assert pack.splits["original"].tolist() == [1, 1, 1, 1, 3, 3, 3, 3]
    assert pack.splits["vinyals"].tolist() == [1, 1, 2, 2, 1, 1, 3, 3]
    for index, (group, name) in enumerate(wanted):
        found = read_class(pack, index, 1, inverted=False, size=15)
        assert np.array_equal(found, np.stack([drawings[group, name, drawer] for drawer in range(1, 21)]))


def test_a_missing_drawing_is_named(tmp_path):
    archives, _ = omniglot_archives(tmp_path, drawers=19)
    with pytest.raises(InputError, match=r"class 'background/Greek/character01' has 19 drawings"):
        convert_omniglot(archives, tmp_path / "omniglot.npz", quiet)


def cifar_archive(folder, per_class=(500, 100), protocol=2):
    """A small archive in CIFAR-100's form: three classes; and its images [class, image, 3, 32, 32]."""
    names, groups = ["apple", "baby", "bear"], ["fruit_and_vegetables", "large_carnivores", "people"]
    images = random_images(3, 3, 32)[:, None] + np.arange(600, dtype=np.uint8)[:, None, None, None]
    rows = {"train": slice(0, per_class[0]), "test": slice(500, 500 + per_class[1])}
    parts = {
        "meta": {b"fine_label_names": [x.encode() for x in names], b"coarse_label_names": [x.encode() for x in groups]}
    }
    for part, mine in rows.items():
        # The classes take turns, as they do not lie one after the other in the original.
        data = images[:, mine].swapaxes(0, 1).reshape(-1, 3072)
        fine = [0, 1, 2] * (len(data) // 3)
        parts[part] = {b"data": data, b"fine_labels": fine, b"coarse_labels": [[0, 2, 1][label] for label in fine]}
    path = folder / "cifar-100-python.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for part, content in parts.items():
            info = tarfile.TarInfo(f"cifar-100-python/{part}")
            data = pickle.dumps(content, protocol)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path, images


def test_cifar_100_becomes_a_pack_with_its_two_splits(tmp_path):
    archive, images = cifar_archive(tmp_path)
    pack = convert_cifar100([archive], tmp_path / "cifar100.npz", quiet)
    assert pack.class_names == ("apple", "baby", "bear")
    assert pack.class_groups == ("fruit_and_vegetables", "people", "large_carnivores")
    assert pack.splits["fc100"].tolist() == [1, 3, 2]
    assert pack.splits["cifarfs"].tolist() == [1, 3, 1]
    for index in range(3):
        assert np.array_equal(read_class(pack, index, 3, inverted=False, size=32), images[index])


def test_a_cifar_class_of_another_size_is_named(tmp_path):
    archive, _ = cifar_archive(tmp_path, per_class=(500, 99))
    with pytest.raises(InputError, match="class 'apple' has 599 images; expected 600"):
        convert_cifar100([archive], tmp_path / "cifar100.npz", quiet)


def test_another_archive_is_not_taken_for_cifar_100(tmp_path):
    path = tmp_path / "other.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("hello"))
    with pytest.raises(InputError, match="not CIFAR-100's archive for Python"):
        convert_cifar100([path], tmp_path / "cifar100.npz", quiet)


def mini_imagenet_caches(folder, python_2=False):
    """Three small caches in mini-ImageNet's form: a class each, whose images are of one colour; and their paths."""
    paths = []
    for number, part in enumerate(("train", "val", "test")):
        shades = np.arange(600, dtype=np.uint8)
        images = np.broadcast_to(shades[:, None, None, None], (600, 84, 84, 3))
        key = (lambda text: text.encode()) if python_2 else str
        cache = {
            key("image_data"): np.ascontiguousarray(images),
            key("class_dict"): {key(f"n{number:02}"): list(range(599, -1, -1))},
        }
        path = folder / f"mini-imagenet-cache-{part}.pkl"
        path.write_bytes(pickle.dumps(cache, 2 if python_2 else 4))
        paths.append(path)
    return paths


@pytest.mark.parametrize("python_2", [False, True])
def test_mini_imagenets_caches_become_a_pack(python_2, tmp_path):
    paths = mini_imagenet_caches(tmp_path, python_2)
    pack = convert_mini_imagenet(paths[::-1], tmp_path / "miniimagenet.npz", quiet)
    assert pack.class_names == ("n00", "n01", "n02")
    assert pack.splits["ravi"].tolist() == [1, 2, 3]
    found = read_class(pack, 2, 3, inverted=False, size=84)
    assert np.array_equal(found[:, 0, 0, 0], np.arange(599, -1, -1).astype(np.uint8))
    assert (found == found[:, :1, :1, :1]).all()


def test_caches_of_the_wrong_names_are_refused(tmp_path):
    paths = mini_imagenet_caches(tmp_path)
    with pytest.raises(
        InputError, match=r"mini-imagenet-cache-train\.pkl, mini-imagenet-cache-val\.pkl came; expected"
    ):
        convert_mini_imagenet(paths[:2], tmp_path / "a.npz", quiet)


@pytest.mark.parametrize(
    ("cache", "problem"),
    [
        ([1], "holds no dictionary"),
        ({"x": 1}, "no `image_data`"),
        ({"image_data": np.zeros((2, 32, 32, 3), np.uint8), "class_dict": {}}, "no `image_data`"),
        ({"image_data": np.zeros((2, 84, 84, 3), np.uint8)}, "holds no dictionary"),
        ({"image_data": np.zeros((2, 84, 84, 3), np.uint8), "class_dict": {"a": [0, 2]}}, "class 'a' in"),
        ({"image_data": np.zeros((2, 84, 84, 3), np.uint8), "class_dict": {"a": ["x"]}}, "class 'a' in"),
        ({"image_data": np.zeros((2, 84, 84, 3), np.uint8), "class_dict": {"a": [[0], [0, 1]]}}, "class 'a' in"),
        ({"image_data": np.zeros((2, 84, 84, 3), np.uint8), "class_dict": {"a": [0, 1]}}, "class 'a' has 2 images"),
    ],
)
def test_other_pickles_are_not_taken_for_caches(cache, problem, tmp_path):
    paths = [tmp_path / f"{part}.pkl" for part in ("train", "val", "test")]
    for path in paths:
        path.write_bytes(pickle.dumps(cache))
    with pytest.raises(InputError, match=problem):
        convert_mini_imagenet(paths, tmp_path / "a.npz", quiet)


def test_a_folder_and_the_pack_made_of_it_give_the_same_images(tmp_path, empty_data_folder):
    folder = write_folder(tmp_path / "pets", ["ant", "bee", "cat", "dog"], per_class=2)
    Image.fromarray(random_images(1, 3, 8)[0].transpose(1, 2, 0)).save(folder / "ant" / "x.bmp")
    Image.fromarray(random_images(1, 3, 8)[0].transpose(1, 2, 0)).save(folder / "bee" / "x.jpg")
    write_pack(convert_folder(folder, empty_data_folder / "mine.npz", quiet))
    for split in ("train", "validation", "test"):
        one, other = load_images(f"folder:{folder}", split), load_images("mine", split)
        assert one.class_names == other.class_names
        assert np.array_equal(one.images.numpy(), other.images.numpy())


def test_a_broken_image_is_found_before_the_pack_is_written(tmp_path):
    folder = write_folder(tmp_path / "pets", ["ant", "bee", "cat"])
    (folder / "bee" / "9.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(InputError, match=r"9\.png \(class 'bee'\) is not an image"):
        convert_folder(folder, tmp_path / "mine.npz", quiet)


def test_more_images_than_a_pack_may_hold_are_refused(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "pets", ["ant", "bee", "cat"])
    size = sum(path.stat().st_size for path in folder.rglob("*.png"))
    monkeypatch.setattr("srwm.data.convert.MAX_BYTES", size)
    assert len(convert_folder(folder, tmp_path / "mine.npz", quiet).files) == size
    monkeypatch.setattr("srwm.data.convert.memory_bytes", lambda: 2 * size - 2)
    with pytest.raises(InputError, match=f"pets take more than {size - 1} bytes"):
        convert_folder(folder, tmp_path / "mine.npz", quiet)
