import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from srwm.data import load_folder, load_images, write_pack
from srwm.data.convert import convert_folder
from srwm.data.decode import resize_images
from srwm.data.image_set import ImageSet
from srwm.data.sources import SOURCES
from srwm.errors import InputError

from .images import make_pack, small_omniglot, write_folder

SPLITS = ("train", "validation", "test")
NAMES = [f"character{index}" for index in range(400)]


def test_a_pack_is_loaded_class_by_class(empty_data_folder):
    pack, images = make_pack(empty_data_folder / "pets.npz")
    write_pack(pack)
    found = load_images("pets", "train", image_size=8)
    assert found.name == "pets/train"
    assert found.class_names == ("class0", "class1", "class2")
    assert np.array_equal(found.images.numpy(), images[:3].reshape(12, 3, 8, 8))
    assert (found.starts.tolist(), found.counts.tolist()) == ([0, 4, 8], [4, 4, 4])
    assert load_images("pets", "test", image_size=8).class_names == ("class4", "class5")


def test_the_folder_can_be_named(tmp_path):
    write_pack(make_pack(tmp_path / "pets.npz")[0])
    assert load_images("pets", "test", folder=tmp_path).num_classes == 2


def test_images_of_a_class_may_lie_anywhere_in_the_pack(empty_data_folder):
    pack, images = make_pack(empty_data_folder / "pets.npz", classes=3, per_class=2, codes=(1, 2, 3))
    order = np.array([0, 1, 2, 0, 1, 2])
    object.__setattr__(pack, "class_of_file", order)
    write_pack(pack)
    flat = images.reshape(6, 3, 8, 8)
    assert np.array_equal(load_images("pets", "validation", image_size=8).images.numpy(), flat[[1, 4]])


def test_omniglot_is_inverted_then_resized_then_turned(empty_data_folder, monkeypatch):
    images = small_omniglot(empty_data_folder, monkeypatch)
    found = load_images("omniglot", "validation")
    wanted = torch.from_numpy(resize_images(255 - images[4], 28).copy())
    assert found.images.shape == (80, 1, 28, 28)
    assert found.counts.tolist() == [20] * 4
    for turns in range(4):
        assert torch.equal(found.images[20 * turns : 20 * turns + 20], torch.rot90(wanted, turns, (2, 3)))
    assert found.class_names == (
        "Hebrew/character04",
        "Hebrew/character04 turned 90",
        "Hebrew/character04 turned 180",
        "Hebrew/character04 turned 270",
    )


def test_a_turn_by_90_degrees_is_that_of_pillow(empty_data_folder, monkeypatch):
    small_omniglot(empty_data_folder, monkeypatch)
    found = load_images("omniglot", "validation")
    turned = Image.fromarray(found.images[0, 0].numpy()).rotate(90)
    assert np.array_equal(np.asarray(turned), found.images[20, 0].numpy())


def test_rotations_can_be_left_out_and_asked_for(empty_data_folder, monkeypatch):
    small_omniglot(empty_data_folder, monkeypatch)
    assert load_images("omniglot", "train", rotations=False).num_classes == 4
    write_pack(make_pack(empty_data_folder / "pets.npz")[0])
    assert load_images("pets", "test").num_classes == 2
    assert load_images("pets", "test", rotations=True).num_classes == 8


def test_the_original_split_keeps_whole_alphabets_for_validation(empty_data_folder, monkeypatch):
    small_omniglot(empty_data_folder, monkeypatch)
    names = [load_images("omniglot-original", split, rotations=False).class_names for split in SPLITS]
    assert [len(part) for part in names] == [4, 1, 2]
    assert names[1] == ("Hebrew/character04",)


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 84), (1, 84), (3, 5)])
def test_size_and_channels_can_be_asked_for(channels, size, empty_data_folder, monkeypatch):
    small_omniglot(empty_data_folder, monkeypatch)
    write_pack(make_pack(empty_data_folder / "pets.npz")[0])
    for source in ("omniglot", "pets"):
        found = load_images(source, "validation", channels=channels, image_size=size, rotations=False)
        assert found.images.shape[1:] == (channels, size, size)
    assert load_images("pets", "train").images.shape[1:] == (3, 84, 84)


def test_grey_images_in_colours_have_three_equal_channels(empty_data_folder, monkeypatch):
    small_omniglot(empty_data_folder, monkeypatch)
    grey, colours = (load_images("omniglot", "test", channels=channels).images for channels in (1, 3))
    assert torch.equal(colours, grey.expand(-1, 3, -1, -1))


def test_strokes_are_drawn_in_the_size_and_channels_asked_for(monkeypatch):
    from srwm.data import strokes

    drawn = strokes.draw_strokes
    monkeypatch.setattr(strokes, "draw_strokes", lambda split, **options: drawn(split, **options, classes=3))
    found = load_images("strokes", "test", image_size=16, channels=3)
    assert found.images.shape[1:] == (3, 16, 16)
    assert load_images("strokes", "test").images.shape[1:] == (1, 28, 28)
    assert load_images("strokes", "test", rotations=True).num_classes == 12


def test_a_folder_of_images_is_loaded(tmp_path):
    write_folder(tmp_path / "pets", ["ant", "bee", "cat", "dog", "elk"], per_class=3, size=10)
    parts = [load_images(f"folder:{tmp_path / 'pets'}", split, image_size=6) for split in SPLITS]
    assert sorted(name for part in parts for name in part.class_names) == ["ant", "bee", "cat", "dog", "elk"]
    assert [part.num_classes for part in parts] == [3, 1, 1]
    assert [part.name for part in parts] == [f"pets/{split}" for split in SPLITS]
    assert parts[0].images.shape == (9, 3, 6, 6)


def test_a_folder_of_images_of_many_sizes_is_loaded(tmp_path):
    write_folder(tmp_path, ["a", "b", "c"], per_class=2, size=10)
    for name in ("a", "b", "c"):
        Image.new("L", (30, 7), 9).save(tmp_path / name / "other.png")
    found = load_images(f"folder:{tmp_path}", "train")
    assert found.images.shape == (3, 3, 84, 84)
    assert (found.images[2] == 9).all()


@pytest.mark.parametrize("in_pack", [False, True])
def test_a_class_of_photographs_takes_the_memory_of_one(in_pack, tmp_path, empty_data_folder):
    side, number = 512, 12
    folder = write_folder(tmp_path / "pets", ["train/ant", "test/bee"], per_class=1)
    for index in range(number):
        Image.new("RGB", (side, side), (index, 9, 9)).save(folder / "train" / "ant" / f"photograph{index}.png")
    if in_pack:
        write_pack(convert_folder(folder, empty_data_folder / "mine.npz", lambda _: None))
    tracemalloc.start()
    try:
        found = load_images("mine" if in_pack else f"folder:{folder}", "train", image_size=8)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.images[:, 0, 0, 0].tolist()[1:] == sorted(range(number), key=str)
    # One photograph is unpacked in a few copies; all at once would be one copy of each at the least.
    assert peak < number / 2 * 3 * side * side


def test_more_images_than_memory_holds_are_refused(empty_data_folder, monkeypatch):
    pack, _ = make_pack(empty_data_folder / "pets.npz")
    write_pack(replace(pack, tiles=(1000, 1000)))
    monkeypatch.setattr("srwm.data.load.memory_bytes", lambda: 2**30)
    with pytest.raises(InputError, match=r"pets/train has 12000000 images; at 3 x 84 x 84 .* GB, .* this machine has"):
        load_images("pets", "train")


@pytest.mark.parametrize("rotations", [False, True])
def test_more_drawings_than_memory_holds_are_refused(rotations, empty_data_folder, monkeypatch):
    monkeypatch.setattr("srwm.data.load.memory_bytes", lambda: 400 * 20 * 28 * 28 * (2 if rotations else 1))
    monkeypatch.setattr("srwm.data.strokes.draw_strokes", lambda *_, **__: drawn)
    drawn = ImageSet.of_counts("strokes/test", torch.zeros(400 * 20, 1, 28, 28, dtype=torch.uint8), [20] * 400, NAMES)
    load_images("strokes", "test", rotations=False)
    with pytest.raises(InputError, match=r"strokes/test has [0-9]* images; at 1 x .* this machine has"):
        load_images("strokes", "test", rotations=rotations, image_size=28 if rotations else 29)


def test_a_broken_image_in_a_folder_is_named_with_its_class(tmp_path):
    write_folder(tmp_path, ["a", "b", "c"])
    for name in ("a", "b", "c"):
        (tmp_path / name / "1.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"1\.png \(class '[abc]'\) is not an image"):
        load_images(f"folder:{tmp_path}", "train")


def test_a_broken_image_in_a_pack_is_named_with_its_class(empty_data_folder):
    pack, _ = make_pack(empty_data_folder / "pets.npz")
    files = pack.files.copy()
    files[pack.offsets[5] : pack.offsets[6]] = 0
    object.__setattr__(pack, "files", files)
    write_pack(pack)
    with pytest.raises(InputError, match=r"image file 1 of class 'class1' in .*pets\.npz is not an image"):
        load_images("pets", "train")


def test_a_split_without_classes_is_named(empty_data_folder, tmp_path):
    write_pack(make_pack(empty_data_folder / "pets.npz", classes=2, codes=(1, 1))[0])
    with pytest.raises(InputError, match="no class in the test part of its split 'default'"):
        load_images("pets", "test")
    write_folder(tmp_path, ["test/a"])
    with pytest.raises(InputError, match="has no folder 'train' with classes"):
        load_images(f"folder:{tmp_path}", "train")


def test_a_pack_without_the_wanted_split_is_named(empty_data_folder):
    write_pack(make_pack(empty_data_folder / "omniglot.npz")[0])
    with pytest.raises(InputError, match=r"omniglot\.npz has no split 'vinyals'; it has default"):
        load_images("omniglot", "test")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"split": "valid"}, "split='valid'; expected one of train, validation, test"),
        ({"channels": 2}, "channels=2"),
        ({"image_size": 0}, "image_size=0"),
        ({"image_size": 5000}, "image_size=5000"),
        ({"source": "omnigot"}, "did you mean 'omniglot'"),
        ({"source": "omniglot"}, "run `srwm data fetch omniglot`"),
        ({"source": "folder:/no/where"}, "/no/where is not a folder"),
    ],
)
@pytest.mark.usefixtures("as_installed")
def test_what_cannot_be_is_refused(arguments, problem):
    with pytest.raises(InputError, match=problem):
        load_images(**{"source": "strokes", "split": "test", **arguments})


@pytest.mark.parametrize(
    "name", ["omniglot", "omniglot-original", "fc100", "cifar-fs", "tiny-imagenet-100", "mini-imagenet"]
)
def test_splits_of_a_real_pack_are_disjoint_and_have_the_papers_counts(name, real_pack):
    from srwm.data import read_pack
    from srwm.data.load import classes_of

    source = SOURCES[name]
    pack = read_pack(real_pack(source.pack))
    parts = [classes_of(pack, source, split) for split in SPLITS]
    assert tuple(map(len, parts)) == source.classes
    assert len({index for part in parts for index in part}) == sum(source.classes)
    assert {pack.count_of(index) for part in parts for index in part} == {source.images_per_class}


def test_real_omniglot_is_white_ink_on_black_in_4112_688_and_1692_classes(real_pack):
    folder = real_pack("omniglot.npz").parent
    sets = [load_images("omniglot", split, folder=folder) for split in SPLITS]
    assert [found.num_classes for found in sets] == [4112, 688, 1692]
    assert all(found.images.shape[1:] == (1, 28, 28) for found in sets)
    assert all(set(found.counts.tolist()) == {20} for found in sets)
    assert all(5 < found.images.float().mean() < 50 for found in sets)
    names = [set(found.class_names) for found in sets]
    assert sum(map(len, names)) == len(set().union(*names)) == 4 * 1623


def test_real_fc100_tests_on_the_papers_super_classes(real_pack):
    found = load_images("fc100", "test", folder=real_pack("cifar100.npz").parent)
    assert {name.split("/")[0] for name in found.class_names} == {
        "aquatic_mammals",
        "insects",
        "medium_mammals",
        "people",
    }
    assert found.images.shape == (12_000, 3, 32, 32)


def test_all_classes_of_a_folder_are_loaded_whatever_split_they_would_belong_to(tmp_path):
    folder = write_folder(tmp_path / "pets", ["ant", "bee"])
    found = load_folder(folder, image_size=8, channels=3)
    assert (found.name, found.class_names, found.counts.tolist()) == ("pets", ("ant", "bee"), [2, 2])
    split = write_folder(tmp_path / "more", ["train/ant", "test/bee"])
    assert load_folder(split, image_size=8, channels=1).class_names == ("ant", "bee")
    with pytest.raises(InputError, match="holds no folders"):
        load_folder(folder / "ant", image_size=8, channels=3)
