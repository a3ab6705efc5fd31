"""Packs made from what others publish: archives of Omniglot and CIFAR-100, caches of mini-ImageNet, folders."""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from numpy import ndarray

from srwm.errors import InputError
from srwm.runs.reading import read_file

from ._memory import memory_bytes
from ._npz import MAX_BYTES
from ._shown import shown
from .archives import read_members
from .decode import MAX_FILE_BYTES, decode_image, encode_image, join_tiles, quiet_pillow
from .image_folder import scan_folder
from .numpy_pickle import parse_numpy_pickle, read_numpy_pickle
from .pack import SPLIT_CODES, TEST, TRAIN, Pack
from .sources import SOURCES
from .splits import cifar_fs_split, fc100_split, vinyals_split

Report = Callable[[str], None]
"""Is told what is being done."""

_DRAWING = re.compile(r"(?:.*/)?images_(background|evaluation)/([^/]+)/([^/]+)/[0-9]+_([0-9]{2})\.png")
_OMNIGLOT_TILES = (4, 5)
_SHEET_OF_600 = (24, 25)
_KEPT_FORMATS = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF")
"""How the files begin that a pack holds as they are: PNG, JPEG, WebP."""


def convert_omniglot(archives: Sequence[Path], path: Path, report: Report) -> Pack:
    """Make a pack of Omniglot's two archives, `images_background.zip` and `images_evaluation.zip`."""
    drawings: defaultdict[tuple[str, str, str], dict[int, bytes]] = defaultdict(dict)
    for archive in archives:
        report(f"reading {archive.name}")
        for name, data in read_members(archive):
            found = _DRAWING.fullmatch(name)
            if found:
                drawings[found[1], found[2], found[3]][int(found[4])] = data
    report(f"packing {len(drawings)} classes")
    rows, columns = _OMNIGLOT_TILES
    files = []
    with quiet_pillow():
        for index, (key, images) in enumerate(sorted(drawings.items())):
            name = "/".join(key)
            if sorted(images) != list(range(1, rows * columns + 1)):
                raise InputError(f"class {name!r} has {len(images)} drawings; expected one by each of 20 drawers")
            sheets = [decode_image(images[drawer], 1, f"drawing {drawer} of {name!r}") for drawer in sorted(images)]
            files.append((index, encode_image(join_tiles(_stack(sheets, name), _OMNIGLOT_TILES))))
    classes = [(part == "evaluation", group, name) for part, group, name in sorted(drawings)]
    return Pack.of_files(
        path,
        files,
        tiles=_OMNIGLOT_TILES,
        class_names=tuple(name for _, _, name in classes),
        class_groups=tuple(group for _, group, _ in classes),
        splits={
            "vinyals": np.array([vinyals_split(group, name, test) for test, group, name in classes], np.uint8),
            "original": np.array([TEST if test else TRAIN for test, _, _ in classes], np.uint8),
        },
        source="Omniglot, Lake et al. 2015; drawer 1 to 20 in tile order, row by row; black ink on white",
        licence=SOURCES["omniglot"].licence,
    )


def _stack(images: Sequence[UInt8[ndarray, "c _h _w"]], name: str) -> UInt8[ndarray, "n c h w"]:
    if len({image.shape for image in images}) != 1:
        raise InputError(f"the images of class {name!r} differ in size")
    return np.stack(images)


def convert_cifar100(archives: Sequence[Path], path: Path, report: Report) -> Pack:
    """Make a pack of CIFAR-100's archive `cifar-100-python.tar.gz`."""
    (archive,) = archives
    report(f"reading {archive.name}")
    parts = {
        name.rpartition("/")[2]: _dictionary(parse_numpy_pickle(data, f"{name} in {archive}"), f"{name} in {archive}")
        for name, data in read_members(archive)
        if name.endswith(("/train", "/test", "/meta"))
    }
    try:
        names = [_text(name) for name in parts["meta"]["fine_label_names"]]
        groups = [_text(name) for name in parts["meta"]["coarse_label_names"]]
        images = np.concatenate([_pixels(parts[part]["data"]) for part in ("train", "test")]).reshape(-1, 3, 32, 32)
        fine, coarse = (
            np.array([*parts["train"][key], *parts["test"][key]], np.int64) for key in ("fine_labels", "coarse_labels")
        )
        if min(fine, default=0) < 0 or min(coarse, default=0) < 0:
            raise ValueError("a label is below zero")
        group_of = {int(one): groups[int(other)] for one, other in zip(fine, coarse, strict=True)}
        class_groups = tuple(group_of[index] for index in range(len(names)))
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise InputError(f"{archive} is not CIFAR-100's archive for Python: {shown(error)}") from error
    report("packing the classes")
    files = list(enumerate(_sheets_of_600([(name, images, fine == index) for index, name in enumerate(names)])))
    return Pack.of_files(
        path,
        files,
        tiles=_SHEET_OF_600,
        class_names=tuple(names),
        class_groups=class_groups,
        splits={
            "fc100": np.array([fc100_split(group) for group in class_groups], np.uint8),
            "cifarfs": np.array([cifar_fs_split(name) for name in names], np.uint8),
        },
        source="CIFAR-100, Krizhevsky 2009; tiles 0 to 499 of a class are training images, 500 to 599 test images",
        licence=SOURCES["fc100"].licence,
    )


def _pixels(value: Any) -> UInt8[ndarray, "..."]:
    if not isinstance(value, ndarray) or value.dtype != np.uint8:
        raise TypeError(f"expected an array of uint8, got {value.dtype if isinstance(value, ndarray) else type(value)}")
    return value


def _sheets_of_600(classes: Sequence[tuple[str, UInt8[ndarray, "_n c h w"], ndarray]]) -> list[bytes]:
    """Encode classes, each given by its name, images and which of these are its own; several at a time."""

    def encode(one: tuple[str, UInt8[ndarray, "_n c h w"], ndarray]) -> bytes:
        name, images, mine = one
        chosen = images[mine]
        if len(chosen) != 600:
            raise InputError(f"class {name!r} has {len(chosen)} images; expected 600")
        return encode_image(join_tiles(chosen, _SHEET_OF_600))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(encode, classes))


def convert_mini_imagenet(caches: Sequence[Path], path: Path, report: Report) -> Pack:
    """Make a pack of mini-ImageNet's three published caches, pickles of `image_data` and `class_dict`."""
    files: list[tuple[int, bytes]] = []
    names: list[str] = []
    codes: list[int] = []
    for split, cache in _caches_by_split(caches).items():
        report(f"reading {cache.name}")
        content = _dictionary(read_numpy_pickle(cache), str(cache))
        images, classes = content.get("image_data"), content.get("class_dict")
        if not isinstance(images, ndarray) or images.dtype != np.uint8 or images.shape[1:] != (84, 84, 3):
            raise InputError(f"{cache} has no `image_data` of bytes [n, 84, 84, 3]: it is no cache of mini-ImageNet")
        mine = []
        for name, indices in sorted(_dictionary(classes, str(cache)).items()):
            rows = _numbers(indices)
            if rows.ndim != 1 or rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < len(images))).all():
                raise InputError(f"class {name!r} in {cache} does not name images by their numbers")
            mine.append((name, images.transpose(0, 3, 1, 2), rows))
        report(f"packing the classes of {cache.name}")
        files += enumerate(_sheets_of_600(mine), start=len(names))
        names += [name for name, _, _ in mine]
        codes += [SPLIT_CODES[split]] * len(mine)
    return Pack.of_files(
        path,
        files,
        tiles=_SHEET_OF_600,
        class_names=tuple(names),
        class_groups=("",) * len(names),
        splits={"ravi": np.array(codes, np.uint8)},
        source="mini-ImageNet, Vinyals et al. 2016, split of Ravi and Larochelle 2017, from its published caches",
        licence=SOURCES["mini-imagenet"].licence,
    )


def _numbers(value: Any) -> ndarray:
    try:
        return np.asarray(value)
    except ValueError:  # Lists of different lengths make no array.
        return np.array(None)


def _caches_by_split(caches: Sequence[Path]) -> dict[str, Path]:
    """Tell the caches of the three parts by their names."""
    words = {"train": "train", "validation": "val", "test": "test"}
    found = {split: [path for path in caches if word in path.name] for split, word in words.items()}
    if len(caches) != 3 or any(len(paths) != 1 for paths in found.values()):
        came = ", ".join(path.name for path in caches) or "nothing"
        raise InputError(
            f"{came} came; expected mini-imagenet-cache-train.pkl, -val.pkl (or -validation.pkl), -test.pkl"
        )
    return {split: paths[0] for split, paths in found.items()}


def convert_folder(folder: Path, path: Path, report: Report) -> Pack:
    """Make a pack of a folder of images; PNG, JPEG and WebP files go into it as they are."""
    classes = scan_folder(folder)
    files, num_bytes = [], 0
    # The images lie in memory as they came, and once more as one array.
    most = min(MAX_BYTES, (memory_bytes() or 2 * MAX_BYTES) // 2)
    with quiet_pillow():
        for index, one in enumerate(classes):
            report(f"packing {shown(one.name)}")
            for file in one.files:
                what = f"{file} (class {one.name!r})"
                data = read_file(file, MAX_FILE_BYTES, what)
                image = decode_image(data, 3, what)
                files.append((index, data if data.startswith(_KEPT_FORMATS) else encode_image(image)))
                num_bytes += len(files[-1][1])
                if num_bytes > most:
                    raise InputError(
                        f"the images in {folder} take more than {most} bytes, which is all that a pack may have here; "
                        "import smaller ones, or train from the folder itself with folder:PATH"
                    )
    return Pack.of_files(
        path,
        files,
        tiles=(1, 1),
        class_names=tuple(one.name for one in classes),
        class_groups=("",) * len(classes),
        splits={"default": np.array([one.code for one in classes], np.uint8)},
        source=f"the folder {folder.name}",
        licence="that of its images",
    )


def _dictionary(value: Any, what: str) -> Mapping[str, Any]:
    """Give a dictionary whose keys are texts, also where Python 2 wrote them."""
    if not isinstance(value, dict):
        raise InputError(f"{what} holds no dictionary")
    return {_text(key): item for key, item in value.items()}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
