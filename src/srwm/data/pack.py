"""The pack: the images of many classes in one file, encoded, with the classes' names and splits.

A pack is a NumPy `.npz` file without pickles:

- `files` uint8[n]: encoded image files (PNG, WebP or JPEG), one after the other
- `offsets` int64[n_files + 1]: file i is `files[offsets[i]:offsets[i + 1]]`
- `tiles` int32[2]: rows and columns of equally large images in one file, read row by row
- `class_of_file` int32[n_files]
- `class_name`, `class_group` str[n_classes] (group: alphabet, super-class, WordNet id; may be empty)
- `split_<name>` uint8[n_classes]: 1 train, 2 validation, 3 test, 0 unused
- `source`, `licence`: strings
- `part_of_file` uint8[n_files], where the images of all classes come in official parts: 1 training, 3 test
- `count_of_file` int32[n_files], where a file may hold fewer images than tiles: how many; the rest are blank
"""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srwm.errors import InputError

from ._atomic import atomic_file
from ._npz import read_npz, write_npz

UNUSED, TRAIN, VALIDATION, TEST = 0, 1, 2, 3
SPLIT_CODES = {"train": TRAIN, "validation": VALIDATION, "test": TEST}

_FIXED = ("files", "offsets", "tiles", "class_of_file", "class_name", "class_group", "source", "licence")
_OPTIONAL = ("part_of_file", "count_of_file")
_PREFIX = "split_"
_INTEGERS = np.typecodes["AllInteger"]


@dataclass(frozen=True, eq=False)
class Pack:
    """The content of a pack file; see this module's text for the fields."""

    path: Path
    files: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    tiles: tuple[int, int]
    class_of_file: NDArray[np.int64]
    class_names: tuple[str, ...]
    class_groups: tuple[str, ...]
    splits: dict[str, NDArray[np.uint8]]
    source: str
    licence: str
    part_of_file: NDArray[np.uint8] | None = None
    count_of_file: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        problem = _problem_of(self)
        if problem:
            raise InputError(f"{self.path} is broken: {problem}")

    @classmethod
    def of_files(cls, path: Path, files: Sequence[tuple[int, bytes]], **fields: Any) -> "Pack":
        """Build a pack from (class, encoded file) pairs; `fields` are the other fields."""
        sizes = np.array([0, *(len(data) for _, data in files)], np.int64)
        return cls(
            path=path,
            files=np.frombuffer(b"".join(data for _, data in files), np.uint8),
            offsets=sizes.cumsum(),
            class_of_file=np.array([index for index, _ in files], np.int64),
            **fields,
        )

    @property
    def num_files(self) -> int:
        """How many encoded files there are."""
        return len(self.class_of_file)

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @property
    def num_images(self) -> int:
        """How many images there are."""
        if self.count_of_file is not None:
            return int(self.count_of_file.sum())
        return self.num_files * self.tiles[0] * self.tiles[1]

    @functools.cached_property
    def _files_by_class(self) -> list[NDArray[np.intp]]:
        """The numbers of each class's files, rising; found for all at once, since there may be many classes."""
        order = np.argsort(self.class_of_file, kind="stable")
        ends = np.bincount(self.class_of_file, minlength=self.num_classes).cumsum()
        return np.split(order, ends[:-1])

    def full_name(self, index: int) -> str:
        """Name a class with its group: `Greek/character01`."""
        group = self.class_groups[index]
        return f"{group}/{self.class_names[index]}" if group else self.class_names[index]

    def classes_in(self, split_name: str, code: int) -> list[int]:
        """List the classes of one part of a split, in the pack's order."""
        if split_name not in self.splits:
            there = ", ".join(sorted(self.splits)) or "none"
            raise InputError(f"{self.path} has no split {split_name!r}; it has {there}")
        return [int(index) for index in np.flatnonzero(self.splits[split_name] == code)]

    def count_of(self, index: int, part: int | None = None) -> int:
        """Say how many images a class has, in one official part or in all."""
        return sum(self._count_in(number) for number in self._numbers_of(index, part))

    def files_of(self, index: int, part: int | None = None) -> Iterator[tuple[bytes, int]]:
        """Give the encoded files of one class, in the pack's order, with the number of images in each.

        Args:
            index: number of the class.
            part: TRAIN or TEST for the files of that official part; None for all.
        """
        for number in self._numbers_of(index, part):
            yield self.files[self.offsets[number] : self.offsets[number + 1]].tobytes(), self._count_in(number)

    def _numbers_of(self, index: int, part: int | None) -> list[int]:
        numbers = self._files_by_class[index]
        if part is not None and self.part_of_file is not None:
            numbers = numbers[self.part_of_file[numbers] == part]
        return [int(number) for number in numbers]

    def _count_in(self, number: int) -> int:
        return self.tiles[0] * self.tiles[1] if self.count_of_file is None else int(self.count_of_file[number])


def _problem_of(pack: Pack) -> str | None:
    """Say what is wrong with a pack's numbers, if anything is."""
    num_classes, num_files = pack.num_classes, pack.num_files
    if num_classes == 0 or num_files == 0:
        return f"it has {num_classes} classes and {num_files} files; expected at least one of each"
    if len(pack.class_groups) != num_classes:
        return f"it has {num_classes} class names but {len(pack.class_groups)} groups"
    names = [pack.full_name(index) for index in range(num_classes)]
    if len(set(names)) != num_classes:
        twice = next(name for name, count in Counter(names).items() if count > 1)
        return f"class {twice!r} is named twice"
    if min(pack.tiles) < 1 or pack.tiles[0] * pack.tiles[1] > 1_000_000:
        return f"a file of {pack.tiles[0]} x {pack.tiles[1]} images makes no sense"
    if len(pack.offsets) != num_files + 1:
        return f"it has {len(pack.offsets)} offsets for {num_files} files; expected one more than files"
    rises = bool((pack.offsets[1:] > pack.offsets[:-1]).all())
    if not rises or pack.offsets[0] != 0 or pack.offsets[-1] != len(pack.files):
        return f"its offsets do not rise from 0 to {len(pack.files)}, the number of bytes"
    if pack.class_of_file.min() < 0 or pack.class_of_file.max() >= num_classes:
        return f"a file belongs to a class outside 0 to {num_classes - 1}"
    empty = np.flatnonzero(np.bincount(pack.class_of_file, minlength=num_classes) == 0)
    if len(empty):
        return f"class {pack.full_name(int(empty[0]))!r} has no image"
    for name, codes in pack.splits.items():
        if codes.shape != (num_classes,) or codes.max() > TEST:
            return f"split {name!r} does not give each of {num_classes} classes a number from 0 to 3"
    return _problem_of_parts(pack)


def _problem_of_parts(pack: Pack) -> str | None:
    """Say what is wrong with the official parts and the numbers of images, if anything is."""
    parts, counts = pack.part_of_file, pack.count_of_file
    tiles = pack.tiles[0] * pack.tiles[1]
    if counts is not None and (len(counts) != pack.num_files or counts.min() < 1 or counts.max() > tiles):
        return f"it does not say of each of {pack.num_files} files that it holds 1 to {tiles} images"
    if parts is None:
        return None
    if len(parts) != pack.num_files or not np.isin(parts, (TRAIN, TEST)).all():
        return f"it does not say of each of {pack.num_files} files whether it is of part {TRAIN} or {TEST}"
    for index in range(pack.num_classes):
        for part, word in ((TRAIN, "training"), (TEST, "test")):
            if pack.count_of(index, part) == 0:
                return f"class {pack.full_name(index)!r} has no {word} image"
    return None


def read_pack(path: Path) -> Pack:
    """Read and check a pack file; the images in it stay encoded.

    Raises:
        InputError: the file is missing or broken; the sentence names it and says what is wrong.
    """
    arrays = read_npz(path, lambda name: name in (*_FIXED, *_OPTIONAL) or name.startswith(_PREFIX))
    missing = [name for name in _FIXED if name not in arrays]
    if missing:
        raise InputError(f"{path} is not a pack of images: it lacks {', '.join(missing)}")

    def array(name: str, types: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
        value = arrays[name]
        fits = len(value.shape) == len(shape) and all(
            want in (None, size) for want, size in zip(shape, value.shape, strict=True)
        )
        if value.dtype.char not in types or not fits:
            raise InputError(f"{path} is broken: {name!r} is {value.dtype} {list(value.shape)}")
        return value

    def texts(name: str) -> tuple[str, ...]:
        value = array(name, "U", (None,))
        try:
            return tuple(value.tolist())
        except ValueError as error:  # Not every number is a character.
            raise InputError(f"{path} is broken: {name!r} is not text") from error

    rows, columns = array("tiles", _INTEGERS, (2,)).tolist()
    splits = {name: array(name, "B", (None,)) for name in sorted(arrays) if name.startswith(_PREFIX)}
    parts = array("part_of_file", "B", (None,)) if "part_of_file" in arrays else None
    counts = array("count_of_file", _INTEGERS, (None,)).astype(np.int64) if "count_of_file" in arrays else None
    arrays["source"], arrays["licence"] = arrays["source"].reshape(-1), arrays["licence"].reshape(-1)
    return Pack(
        path=path,
        files=array("files", "B", (None,)),
        offsets=array("offsets", _INTEGERS, (None,)).astype(np.int64),
        tiles=(rows, columns),
        class_of_file=array("class_of_file", _INTEGERS, (None,)).astype(np.int64),
        class_names=texts("class_name"),
        class_groups=texts("class_group"),
        splits={name.removeprefix(_PREFIX): codes for name, codes in splits.items()},
        source=" ".join(texts("source")),
        licence=" ".join(texts("licence")),
        part_of_file=parts,
        count_of_file=counts,
    )


def write_pack(pack: Pack) -> None:
    """Write a pack to its path, whole or not at all; equal packs give equal bytes.

    Raises:
        RunError: the file cannot be written (a full disk, no permission).
    """
    arrays: dict[str, NDArray[Any]] = {
        "files": pack.files,
        "offsets": pack.offsets,
        "tiles": np.array(pack.tiles, np.int32),
        "class_of_file": pack.class_of_file.astype(np.int32),
        "class_name": np.array(pack.class_names, np.str_),
        "class_group": np.array(pack.class_groups, np.str_),
        **{f"{_PREFIX}{name}": codes for name, codes in sorted(pack.splits.items())},
        "source": np.array(pack.source, np.str_),
        "licence": np.array(pack.licence, np.str_),
    }
    if pack.part_of_file is not None:
        arrays["part_of_file"] = pack.part_of_file
    if pack.count_of_file is not None:
        arrays["count_of_file"] = pack.count_of_file.astype(np.int32)
    with atomic_file(pack.path) as file:
        write_npz(file, arrays)
