"""`load_images`: from a source's name to a tensor of images."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import UInt8
from numpy import ndarray

from srwm.errors import InputError
from srwm.runs.reading import read_file

from ._memory import memory_bytes
from .decode import MAX_FILE_BYTES, cut_tiles, decoded, quiet_pillow, resize_images
from .image_folder import FolderClass, scan_folder
from .image_set import ImageSet
from .pack import SPLIT_CODES, TEST, TRAIN, VALIDATION, Pack, read_pack
from .places import data_folder, find_source, pack_path, without_tilde
from .sources import FOLDER_PREFIX, Source

Split = Literal["train", "validation", "test"]

_FOLDER_SIZE, _FOLDER_CHANNELS = 84, 3


@dataclass(frozen=True)
class _Class:
    """A class, and how to get its decoded images."""

    name: str
    count: int
    """How many images it has."""
    read: Callable[[int], UInt8[ndarray, "n c s s"]]
    """Gives its images, resized to a height and width."""


def load_images(
    source: str,
    split: Split,
    *,
    folder: Path | None = None,
    image_size: int | None = None,
    channels: int | None = None,
    rotations: bool | None = None,
) -> ImageSet:
    """Load one split of a source, decoded and resized.

    Args:
        source: a name that `srwm data list` shows, or `folder:PATH` for a folder that holds a folder of images for each
            class.
        split: `train`, `validation` or `test`.
        folder: where the packs lie; see `data_folder`.
        image_size: height and width of the images; the source's own when None (84 for a folder). Images that are not
            square are stretched.
        channels: 1 for grey, 3 for colours; the source's own when None (3 for a folder).
        rotations: whether the images turned by 90, 180 and 270 degrees make up further classes; the source's own choice
            when None (yes for Omniglot, no for the others).

    Raises:
        InputError: the source is unknown or not there, or what is there is broken.

    Example:
        >>> from pathlib import Path
        >>> load_images("omniglot", "train", folder=Path("nowhere"))
        Traceback (most recent call last):
        srwm.errors.InputError: omniglot is not in nowhere: run `srwm data fetch omniglot`, or name the folder with ...
    """
    if split not in get_args(Split):
        raise InputError(f"split={split!r}; expected one of {', '.join(get_args(Split))}")
    if channels not in (None, 1, 3):
        raise InputError(f"channels={channels}; expected 1 (grey) or 3 (colours)")
    if image_size is not None and not 1 <= image_size <= 1024:
        raise InputError(f"image_size={image_size}; expected 1 to 1024")
    if source.startswith(FOLDER_PREFIX):
        if source == FOLDER_PREFIX:
            raise InputError(f"source={source!r} names no folder; expected folder:PATH")
        path = without_tilde(Path(source.removeprefix(FOLDER_PREFIX)))
        size, depth = image_size or _FOLDER_SIZE, channels or _FOLDER_CHANNELS
        classes = _folder_classes(path, split, depth)
        images = _build(f"{path.resolve().name}/{split}", classes, depth, size)
        return add_rotations(images) if rotations else images
    found = find_source(source, data_folder(folder))
    size, depth = image_size or found.image_size, channels or found.channels
    if found.pack is None:
        number = found.classes[tuple(SPLIT_CODES).index(split)] * found.images_per_class
        _check_fits(f"{found.name}/{split}", number, depth, size)
        images = _draw(split, size, depth)
    else:
        pack = read_pack(pack_path(found, data_folder(folder)))
        images = _build(f"{found.name}/{split}", _pack_classes(pack, found, split, depth), depth, size)
    turn = found.rotations if rotations is None else rotations
    return add_rotations(images) if turn else images


def load_folder(path: Path, *, image_size: int, channels: int) -> ImageSet:
    """Load all classes of a folder of images, whatever split they would belong to.

    Args:
        path: a folder that holds a folder of images for each class.
        image_size: height and width of the images; those that are not square are stretched.
        channels: 1 for grey, 3 for colours.

    Raises:
        InputError: there is no such folder, or what is there is broken.
    """
    path = without_tilde(path)
    found = scan_folder(path, to_split=False)
    classes = [_Class(one.name, len(one.files), partial(_read_files, one, channels)) for one in found]
    return _build(path.resolve().name, classes, channels, image_size)


def has_official_parts(source: str, *, folder: Path | None = None) -> bool:
    """Whether every split of a source has the same classes, with other images: official training and test images.

    Raises:
        InputError: the source is unknown or not there.
    """
    if source.startswith(FOLDER_PREFIX):
        return False
    found = find_source(source, data_folder(folder))
    return found.pack is not None and has_parts(read_pack(pack_path(found, data_folder(folder))), found)


def _draw(split: Split, size: int, channels: int) -> ImageSet:
    from .strokes import draw_strokes

    drawn = draw_strokes(split, image_size=size)
    return drawn if channels == 1 else replace(drawn, images=drawn.images.repeat(1, channels, 1, 1))


def has_parts(pack: Pack, source: Source) -> bool:
    """Whether it is the images of every class that are split, not the classes: official training and test images."""
    return pack.part_of_file is not None and source.split not in pack.splits


def classes_of(pack: Pack, source: Source, split: str) -> list[int]:
    """List the classes of a pack that belong to a source's split."""
    if has_parts(pack, source):
        return list(range(pack.num_classes))
    code = SPLIT_CODES[split]
    if not source.validation_groups or code == TEST:
        return pack.classes_in(source.split, code)
    held_out = set(source.validation_groups)
    return [
        index
        for index in pack.classes_in(source.split, TRAIN)
        if (pack.class_groups[index] in held_out) == (code == VALIDATION)
    ]


def _pack_classes(pack: Pack, source: Source, split: str, channels: int) -> list[_Class]:
    """List the classes of a split of a pack."""
    indices = classes_of(pack, source, split)
    if not indices:
        raise InputError(f"{pack.path} has no class in the {split} part of its split {source.split!r}")
    if has_parts(pack, source):
        return [_part_of_class(pack, index, channels, source.inverted, split) for index in indices]
    return [
        _Class(pack.full_name(index), pack.count_of(index), partial(read_class, pack, index, channels, source.inverted))
        for index in indices
    ]


def _part_of_class(pack: Pack, index: int, channels: int, inverted: bool, split: str) -> _Class:
    """A class of which some images are for training, and some for testing; of the former the last sixth validates."""
    part = TEST if split == "test" else TRAIN
    count = pack.count_of(index, part)
    held_out = count // 6
    if split != "test" and not held_out:
        raise InputError(
            f"class {pack.full_name(index)!r} of {pack.path} has {count} training images; expected at least 6, of which"
            " one validates"
        )
    chosen = {"train": slice(0, count - held_out), "validation": slice(count - held_out, count), "test": slice(count)}

    def read(size: int) -> UInt8[ndarray, "n c s s"]:
        return read_class(pack, index, channels, inverted, size, part=part)[chosen[split]]

    return _Class(pack.full_name(index), len(range(count)[chosen[split]]), read)


def read_class(
    pack: Pack, index: int, channels: int, inverted: bool, size: int, *, part: int | None = None
) -> UInt8[ndarray, "n c s s"]:
    """Decode and resize the images of one class of a pack, or of one official part of it."""
    resized = []
    for number, (data, count) in enumerate(pack.files_of(index, part)):
        what = f"image file {number} of class {pack.full_name(index)!r} in {pack.path}"
        with decoded(data, channels, what) as sheet:
            tiles = cut_tiles(255 - sheet if inverted else sheet, pack.tiles, what)
            resized.append(resize_images(tiles[:count], size))
    return np.concatenate(resized)


def _folder_classes(folder: Path, split: str, channels: int) -> list[_Class]:
    """List the classes of a split of a folder of images."""
    found = [one for one in scan_folder(folder) if one.code == SPLIT_CODES[split]]
    if not found:
        raise InputError(f"{folder} has no folder {split!r} with classes in it")
    return [_Class(one.name, len(one.files), partial(_read_files, one, channels)) for one in found]


def _read_files(one: FolderClass, channels: int, size: int) -> UInt8[ndarray, "n c s s"]:
    """Decode and resize the images of one class of a folder, one at a time: photographs are large."""
    resized = []
    for path in one.files:
        what = f"{path} (class {one.name!r})"
        with decoded(read_file(path, MAX_FILE_BYTES, what), channels, what) as image:
            resized.append(resize_images(image[None], size))
    return np.concatenate(resized)


def _build(name: str, classes: Sequence[_Class], channels: int, size: int) -> ImageSet:
    """Decode all classes, several at a time: Pillow works outside of Python's lock."""
    counts = [one.count for one in classes]
    _check_fits(name, sum(counts), channels, size)
    images = torch.empty(sum(counts), channels, size, size, dtype=torch.uint8)
    places = images.split(counts)

    def fill(index: int) -> None:
        places[index].numpy()[:] = classes[index].read(size)

    with quiet_pillow(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        try:
            for _ in pool.map(fill, range(len(classes))):
                pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # One broken image is enough to stop.
            raise
    return ImageSet.of_counts(name, images, counts, [one.name for one in classes])


def _check_fits(name: str, number: int, channels: int, size: int) -> None:
    """Refuse a tensor that is larger than this machine's memory: the system may give it, and end the process later."""
    num_bytes, memory = number * channels * size * size, memory_bytes()
    if memory is not None and num_bytes > memory:
        raise InputError(
            f"{name} has {number} images; at {channels} x {size} x {size} they take {num_bytes / 1e9:.1f} GB, and this "
            f"machine has {memory / 1e9:.1f} GB: choose a smaller image_size, grey (channels=1) or fewer images"
        )


def add_rotations(images: ImageSet) -> ImageSet:
    """Add the images turned by 90, 180 and 270 degrees (counter-clockwise) as further classes."""
    number, channels, size, _ = images.images.shape
    _check_fits(images.name, 4 * number, channels, size)
    turned = [torch.rot90(images.images, turns, (2, 3)) for turns in range(4)]
    names = [name + (f" turned {90 * turns}" if turns else "") for turns in range(4) for name in images.class_names]
    return ImageSet.of_counts(images.name, torch.cat(turned), images.counts.tolist() * 4, names)
