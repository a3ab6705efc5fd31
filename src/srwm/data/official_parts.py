"""Packs of data sets that come in official training and test images: MNIST, Fashion-MNIST, CIFAR-10."""

import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8
from numpy import ndarray

from srwm.errors import InputError
from srwm.runs.reading import open_file

from ._shown import shown
from .archives import read_members
from .decode import encode_image, join_tiles
from .numpy_pickle import parse_numpy_pickle
from .pack import TEST, TRAIN, Pack

_TILES = (10, 10)
_PER_FILE = _TILES[0] * _TILES[1]
_MOST_BYTES = 2**27
"""No file of numbers may unpack to more."""
_UINT8 = 8
_DIGITS = tuple("0123456789")
_CLOTHES = (
    "T-shirt",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

Part = tuple[UInt8[ndarray, "n c h w"], Int[ndarray, "n"]]
"""Images and their labels."""


def convert_mnist(archives: Sequence[Path], path: Path, report: Callable[[str], None]) -> Pack:
    """Make a pack of MNIST's four files of numbers."""
    return _convert_idx(
        archives, path, report, _DIGITS, "MNIST, LeCun, Cortes and Burges", "none stated; cite LeCun et al. 1998"
    )


def convert_fashion_mnist(archives: Sequence[Path], path: Path, report: Callable[[str], None]) -> Pack:
    """Make a pack of Fashion-MNIST's four files of numbers."""
    return _convert_idx(archives, path, report, _CLOTHES, "Fashion-MNIST, Zalando Research", "MIT")


def convert_cifar10(archives: Sequence[Path], path: Path, report: Callable[[str], None]) -> Pack:
    """Make a pack of CIFAR-10's archive `cifar-10-python.tar.gz`."""
    (archive,) = archives
    report(f"reading {archive.name}")
    batches: dict[str, Mapping[Any, Any]] = {}
    for name, data in read_members(archive):
        last = name.rpartition("/")[2]
        if last.startswith("data_batch_") or last in ("test_batch", "batches.meta"):
            content = parse_numpy_pickle(data, f"{name} in {archive}")
            if not isinstance(content, dict):
                raise InputError(f"{name} in {archive} holds no dictionary")
            batches[last] = {_text(key): value for key, value in content.items()}
    try:
        names = tuple(_text(name) for name in batches["batches.meta"]["label_names"])
        training = [batches[f"data_batch_{number}"] for number in range(1, 6)]
        parts = {TRAIN: _cifar_part(training), TEST: _cifar_part([batches["test_batch"]])}
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{archive} is not CIFAR-10's archive for Python: {shown(error)}") from error
    return _pack(path, parts, names, "CIFAR-10, Krizhevsky 2009", "none stated; cite Krizhevsky 2009", report)


def _cifar_part(batches: Sequence[Mapping[Any, Any]]) -> Part:
    images = np.concatenate([batch["data"] for batch in batches])
    if images.dtype != np.uint8:
        raise TypeError(f"expected images of uint8, got {images.dtype}")
    labels = np.concatenate([np.array(batch["labels"], np.int64) for batch in batches])
    return images.reshape(-1, 3, 32, 32), labels


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _convert_idx(
    archives: Sequence[Path],
    path: Path,
    report: Callable[[str], None],
    names: tuple[str, ...],
    source: str,
    licence: str,
) -> Pack:
    parts: dict[int, Part] = {}
    for word, part in (("train", TRAIN), ("t10k", TEST)):
        files = {
            kind: [one for one in archives if one.name.startswith(f"{word}-{kind}")] for kind in ("images", "labels")
        }
        if any(len(found) != 1 for found in files.values()):
            came = ", ".join(one.name for one in archives)
            raise InputError(f"{came} came; expected {word}-images-idx3-ubyte.gz and {word}-labels-idx1-ubyte.gz, too")
        report(f"reading {files['images'][0].name}")
        images, labels = read_idx(files["images"][0], 3), read_idx(files["labels"][0], 1)
        parts[part] = images[:, None], labels.astype(np.int64)
    return _pack(path, parts, names, source, licence, report)


def read_idx(path: Path, axes: int) -> UInt8[ndarray, "..."]:
    """Read a gzipped file of bytes in the IDX format, as MNIST comes in.

    Raises:
        InputError: it is missing, or not such a file.
    """
    with open_file(path) as file:
        try:
            with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                data = unpacked.read(_MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path} is not a gzipped file that can be read: {shown(error)}") from error
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path} is refused: it unpacks to more than {_MOST_BYTES} bytes")
    start = 4 + 4 * axes
    if len(data) < start or data[:4] != bytes((0, 0, _UINT8, axes)):
        raise InputError(f"{path} is not an IDX file of bytes with {axes} axes")
    shape = [int(size) for size in np.frombuffer(data, ">u4", axes, 4)]
    if int(np.prod(shape, dtype=object)) != len(data) - start:
        raise InputError(f"{path} holds {len(data) - start} bytes; its shape {shape} says otherwise")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _pack(
    path: Path,
    parts: Mapping[int, Part],
    names: tuple[str, ...],
    source: str,
    licence: str,
    report: Callable[[str], None],
) -> Pack:
    """Put images on sheets of a hundred, class by class, the training images before the test images."""
    for images, labels in parts.values():
        if len(images) != len(labels) or not len(labels) or not 0 <= labels.min() <= labels.max() < len(names):
            raise InputError(
                f"the archives of {path.name} hold {len(images)} images and {len(labels)} labels; expected one label "
                f"from 0 to {len(names) - 1} for each image"
            )
    report(f"packing {len(names)} classes")
    files, part_of_file, count_of_file = [], [], []
    for index in range(len(names)):
        for part, (images, labels) in parts.items():
            mine = images[labels == index]
            for first in range(0, len(mine), _PER_FILE):
                some = mine[first : first + _PER_FILE]
                blank = np.zeros((_PER_FILE - len(some), *some.shape[1:]), np.uint8)
                files.append((index, encode_image(join_tiles(np.concatenate([some, blank]), _TILES))))
                part_of_file.append(part)
                count_of_file.append(len(some))
    return Pack.of_files(
        path,
        files,
        tiles=_TILES,
        class_names=names,
        class_groups=("",) * len(names),
        splits={},
        source=f"{source}; all official training and test images",
        licence=licence,
        part_of_file=np.array(part_of_file, np.uint8),
        count_of_file=np.array(count_of_file, np.int64),
    )
