"""Images, packs and folders to test with."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from srwm.data.pack import Pack, write_pack
from srwm.data.sources import SOURCES


def random_images(number, channels=3, size=8, seed=0):
    """Random uint8 images, [number, channels, size, size]."""
    return np.random.default_rng(seed).integers(0, 256, (number, channels, size, size), np.uint8)


def encoded(image, kind="PNG"):
    """The bytes of an image file; `image` is [channels, height, width]."""
    buffer = io.BytesIO()
    array = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    Image.fromarray(np.ascontiguousarray(array)).save(buffer, kind)
    return buffer.getvalue()


def make_pack(path, *, classes=6, per_class=4, size=8, channels=3, codes=(1, 1, 1, 2, 3, 3), split="default"):
    """A pack of random images, one a file; and its images, [classes, per_class, channels, size, size]."""
    images = random_images(classes * per_class, channels, size).reshape(classes, per_class, channels, size, size)
    pack = Pack.of_files(
        path,
        [(index, encoded(image)) for index, mine in enumerate(images) for image in mine],
        tiles=(1, 1),
        class_names=tuple(f"class{index}" for index in range(classes)),
        class_groups=("",) * classes,
        splits={split: np.array(codes, np.uint8)},
        source="tests",
        licence="none",
    )
    return pack, images


def write_folder(folder: Path, classes, per_class=2, size=8):
    """A folder of images: a folder for each of the classes (names, with slashes for sub-folders)."""
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for index, image in enumerate(random_images(per_class, size=size, seed=number)):
            (folder / name / f"{index}.png").write_bytes(encoded(image))
    return folder


def small_omniglot(folder: Path, monkeypatch):
    """Put a pack in the place of Omniglot's: four training characters, one for validation, two for test."""
    images = random_images(7 * 20, 1, 10).reshape(7, 20, 1, 10, 10)
    from srwm.data.decode import encode_image, join_tiles

    pack = Pack.of_files(
        folder / "omniglot.npz",
        [(index, encode_image(join_tiles(mine, (4, 5)))) for index, mine in enumerate(images)],
        tiles=(4, 5),
        class_names=tuple(f"character{index:02}" for index in range(7)),
        class_groups=("Greek", "Greek", "Greek", "Greek", "Hebrew", "ULOG", "ULOG"),
        splits={
            "vinyals": np.array([1, 1, 1, 1, 2, 3, 3], np.uint8),
            "original": np.array([1, 1, 1, 1, 1, 3, 3], np.uint8),
        },
        source="tests",
        licence="none",
    )
    write_pack(pack)
    for name in ("omniglot", "omniglot-original"):
        monkeypatch.setitem(SOURCES, name, replace(SOURCES[name], classes=(4, 1, 2)))
    return images
