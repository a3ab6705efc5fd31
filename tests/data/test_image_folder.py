import os
import random

import pytest

from runs.no_files import SENTENCES, outcome, put
from srwm.data import load_images
from srwm.data.convert import convert_folder
from srwm.data.decode import MAX_FILE_BYTES
from srwm.data.image_folder import scan_folder
from srwm.errors import InputError

from .images import write_folder

CLASSES = ["zebra", "ant", "Bee", "cat2", "cat10"]


def index(folder):
    return [
        (one.name, one.code, [path.relative_to(folder).as_posix() for path in one.files]) for one in scan_folder(folder)
    ]


@pytest.fixture
def shuffled_disk(monkeypatch):
    """A file system that lists names in another order each time."""
    listdir, scandir, rng = os.listdir, os.scandir, random.Random(0)

    def mixed(items):
        return rng.sample(items, len(items))

    monkeypatch.setattr(os, "listdir", lambda path=".": mixed(listdir(path)))

    class Scan:
        def __init__(self, path="."):
            with scandir(path) as entries:
                self.entries = iter(mixed(list(entries)))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def close(self):
            pass

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.entries)

    monkeypatch.setattr(os, "scandir", Scan)


def test_every_folder_is_a_class_and_names_are_sorted(tmp_path):
    found = index(write_folder(tmp_path, CLASSES))
    assert [name for name, _, _ in found] == sorted(CLASSES)
    assert found[0][2] == ["Bee/0.png", "Bee/1.png"]
    assert {code for _, code, _ in found} == {1, 2, 3}


@pytest.mark.usefixtures("shuffled_disk")
def test_the_order_does_not_depend_on_that_of_the_file_system(tmp_path):
    write_folder(tmp_path, [f"{name}/deep/{part}" for name in CLASSES for part in "ab"], per_class=5)
    first = index(tmp_path)
    assert os.listdir(tmp_path) != os.listdir(tmp_path)
    assert all(index(tmp_path) == first for _ in range(5))
    assert first[0][2][:6] == [*(f"Bee/deep/a/{n}.png" for n in range(5)), "Bee/deep/b/0.png"]


@pytest.mark.usefixtures("shuffled_disk")
def test_the_order_in_a_split_does_not_depend_on_that_of_the_file_system(tmp_path):
    write_folder(tmp_path, ["train/b", "train/a", "test/d", "test/c", "validation/e"], per_class=5)
    first = index(tmp_path)
    assert all(index(tmp_path) == first for _ in range(5))


def test_hidden_files_other_files_and_capitals_are_told_apart(tmp_path):
    write_folder(tmp_path, [*CLASSES, ".git", "__MACOSX", "ant/.cache"])
    (tmp_path / "readme.txt").write_text("hello")
    (tmp_path / "ant" / "notes.txt").write_text("hello")
    (tmp_path / "ant" / ".hidden.png").write_text("hello")
    (tmp_path / "ant" / "0.png").rename(tmp_path / "ant" / "0.PNG")
    found = {name: files for name, _, files in index(tmp_path)}
    assert sorted(found) == sorted(CLASSES)
    assert found["ant"] == ["ant/0.PNG", "ant/1.png"]


@pytest.mark.parametrize("validation", ["validation", "val"])
def test_folders_of_a_split_hold_the_classes(tmp_path, validation):
    write_folder(tmp_path, ["train/b", "train/a", "test/c", f"{validation}/d"])
    assert [(name, code) for name, code, _ in index(tmp_path)] == [("a", 1), ("b", 1), ("d", 2), ("c", 3)]


def test_one_part_of_a_split_is_enough(tmp_path):
    assert [one.code for one in scan_folder(write_folder(tmp_path, ["test/a", "test/b"]))] == [3, 3]


def test_a_class_may_be_called_train(tmp_path):
    assert [one.name for one in scan_folder(write_folder(tmp_path, ["train", "car", "bus"]))] == ["bus", "car", "train"]


@pytest.mark.parametrize(
    ("classes", "problem"),
    [
        ([], "holds no folders; expected a folder of images for each class"),
        (["cat"], r"has one class \(cat\); expected at least 3"),
        (["cat", "dog"], r"has 2 classes \(cat, dog\); expected at least 3"),
        (["train/a", "test/a"], "class 'a' is in .*test.* and in .*train"),
        (["train/a", "test/b", "more"], "holds test, train, which split the classes, and also 'more'"),
    ],
)
def test_folders_that_make_no_sense_are_refused(tmp_path, classes, problem):
    with pytest.raises(InputError, match=problem):
        scan_folder(write_folder(tmp_path, classes))


def test_a_folder_of_loose_images_is_refused(tmp_path):
    write_folder(tmp_path, ["images"])
    with pytest.raises(InputError, match="holds no folders, only images"):
        scan_folder(tmp_path / "images")


def test_a_class_without_images_is_named(tmp_path):
    write_folder(tmp_path, CLASSES)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty holds no image; expected files ending in \.png, "):
        scan_folder(tmp_path)


def test_what_is_no_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere is not a folder"):
        scan_folder(tmp_path / "nowhere")


def test_folders_that_are_nested_too_deep_are_refused(tmp_path, monkeypatch):
    # Python 3.11 goes down by calling itself. Folders that deep could not be removed after the test.
    def too_deep(*_, **__):
        raise RecursionError("maximum recursion depth exceeded")

    write_folder(tmp_path, CLASSES, per_class=1)
    monkeypatch.setattr(os, "walk", too_deep)
    with pytest.raises(InputError, match="holds folders in folders, too deep to be read"):
        scan_folder(tmp_path)


def test_a_folder_that_cannot_be_listed_is_named(tmp_path, monkeypatch):
    write_folder(tmp_path, CLASSES, per_class=1)
    scandir = os.scandir

    def closed(path="."):
        if os.fspath(path).endswith("ant"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(InputError, match="ant cannot be read: Permission denied"):
        scan_folder(tmp_path)


def test_a_link_that_leads_to_itself_is_no_class(tmp_path):
    write_folder(tmp_path, CLASSES, per_class=1)
    (tmp_path / "loop").symlink_to("loop")
    assert [name for name, _, _ in index(tmp_path)] == sorted(CLASSES)


@pytest.mark.parametrize("kind", ["pipe", "socket", "nothing"])
def test_what_is_no_file_in_a_folder_of_images_is_named(kind, tmp_path):
    folder = write_folder(tmp_path / "pets", ["train/ant", "test/bee"])
    path = put(folder / "train" / "ant" / "x.png", kind)
    for call in (
        lambda: load_images(f"folder:{folder}", "train"),
        lambda: convert_folder(folder, tmp_path / "mine.npz", lambda _: None),
    ):
        assert outcome(call).startswith(f"{path} (class 'ant') {SENTENCES[kind]}")


def test_a_device_in_a_folder_of_images_is_named(tmp_path, monkeypatch):
    folder = write_folder(tmp_path / "pets", ["train/ant", "test/bee"])
    path = put(folder / "train" / "ant" / "x.png", "device")
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
    sentence = rf"x\.png \(class 'ant'\) has {2**40:,} bytes; at most {MAX_FILE_BYTES:,} are read"
    with pytest.raises(InputError, match=sentence):
        load_images(f"folder:{folder}", "train")


def test_a_folder_with_the_name_of_an_image_holds_images_of_its_class(tmp_path):
    folder = write_folder(tmp_path / "pets", ["train/x.png", "train/ant/y.png", "test/bee"])
    assert load_images(f"folder:{folder}", "train").class_names == ("ant", "x.png")
