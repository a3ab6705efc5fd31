"""Folders of images: a folder a class."""

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from srwm.errors import InputError

from .decode import SUFFIXES
from .pack import SPLIT_CODES, TEST
from .splits import MIN_CLASSES, split_by_name

_SPLIT_FOLDERS = {"train": "train", "validation": "validation", "val": "validation", "test": "test"}
"""Sub-folders that hold the classes of one part of a split, and the part."""


@dataclass(frozen=True)
class FolderClass:
    """A class found in a folder."""

    name: str
    code: int
    """Its part of the split: 1 train, 2 validation, 3 test."""
    files: tuple[Path, ...]
    """Its images, sorted."""


def scan_folder(folder: Path, *, to_split: bool = True) -> list[FolderClass]:
    """Find the classes and images in a folder; the order does not depend on that of the file system.

    Every sub-folder is a class, and every image anywhere below it is one of the class's. Classes are split by their
    names (see `split_by_name`), unless the sub-folders are `train`, `validation` (or `val`) and `test`: then those hold
    the classes. Hidden files and folders, and files that are not images by their names, are passed over.

    Args:
        folder: the folder.
        to_split: whether the classes are to be split, for which there must be enough of them; without, those that lie
            in no folder of a split are test classes.

    Raises:
        InputError: there is no such folder, or what it holds makes no sense as classes of images.
    """
    try:
        return _scan(folder, to_split)
    except OSError as error:
        raise InputError(f"{error.filename or folder} cannot be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise InputError(f"{folder} holds folders in folders, too deep to be read") from error


def _scan(folder: Path, to_split: bool) -> list[FolderClass]:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; expected a folder that holds a folder of images for each class")
    names = _subfolders(folder)
    parts = [name for name in names if name in _SPLIT_FOLDERS and _holds_only_folders(folder / name)]
    if parts:
        return _scan_parts(folder, names, parts)
    if not names:
        loose = ", only images" if _images_below(folder) else ""
        raise InputError(f"{folder} holds no folders{loose}; expected a folder of images for each class")
    if not to_split:
        return [FolderClass(name, TEST, _images_of(folder / name)) for name in names]
    if len(names) < MIN_CLASSES:
        number = "one class" if len(names) == 1 else f"{len(names)} classes"
        raise InputError(
            f"{folder} has {number} ({', '.join(names)}); expected at least {MIN_CLASSES}, "
            "so that there are classes to train on, to validate on and to test on"
        )
    return [
        FolderClass(name, code, _images_of(folder / name))
        for name, code in zip(names, split_by_name(names), strict=True)
    ]


def _scan_parts(folder: Path, names: list[str], parts: list[str]) -> list[FolderClass]:
    """Find the classes in the folders of a split."""
    others = [name for name in names if name not in parts]
    if others:
        raise InputError(
            f"{folder} holds {', '.join(parts)}, which split the classes, and also {others[0]!r}; "
            "expected either classes or the folders of a split, not both"
        )
    found: dict[str, FolderClass] = {}
    part_of: dict[str, str] = {}
    for part in parts:
        for name in _subfolders(folder / part):
            if name in found:
                raise InputError(
                    f"class {name!r} is in {folder / part_of[name]} and in {folder / part}; "
                    "expected each class in one part of the split only"
                )
            part_of[name] = part
            code = SPLIT_CODES[_SPLIT_FOLDERS[part]]
            found[name] = FolderClass(name, code, _images_of(folder / part / name))
    return sorted(found.values(), key=lambda one: (one.code, one.name))


def _subfolders(folder: Path) -> list[str]:
    """Name the folders in a folder, sorted."""
    names = sorted(
        name
        for name in os.listdir(folder)
        if not name.startswith(".") and name != "__MACOSX" and (folder / name).is_dir()
    )
    for name in names:
        # They would break the lines of what lists classes, or play tricks on a terminal.
        if any(unicodedata.category(letter) == "Cc" for letter in name):
            raise InputError(f"the folder {name!r} in {folder} has control characters in its name; rename it")
    return names


def _holds_only_folders(folder: Path) -> bool:
    images = (name for name in os.listdir(folder) if _is_image(name) and not (folder / name).is_dir())
    return bool(_subfolders(folder)) and not any(images)


def _is_image(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def _images_below(folder: Path) -> tuple[Path, ...]:
    def fail(error: OSError) -> NoReturn:
        raise error  # `os.walk` would pass over what it cannot list.

    found = []
    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in names if _is_image(name)]
    return tuple(sorted(found, key=lambda path: path.relative_to(folder).parts))


def _images_of(folder: Path) -> tuple[Path, ...]:
    images = _images_below(folder)
    if not images:
        raise InputError(f"{folder} holds no image; expected files ending in {', '.join(SUFFIXES)}")
    return images
