"""Feature vectors of many classes, computed beforehand by any encoder: imported, kept as a pack, loaded.

A pack of features is a NumPy `.npz` file without pickles, in the folder `features` of the data folder:

- `features` float32[n, f]: the vectors of a class lie one after the other
- `counts` int64[classes]: how many each class has
- `class_name` str[classes]
- `split` uint8[classes]: 1 train, 2 validation, 3 test
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from srwm.errors import InputError

from ._atomic import atomic_file
from ._npz import read_npz, write_npz
from ._shown import quoted, shown
from .pack import SPLIT_CODES
from .places import check_name, data_folder, without_tilde
from .splits import MIN_CLASSES, split_by_name

__all__ = ["FeatureSet", "feature_packs", "import_features", "load_features"]

_FOLDER = "features"
_FIELDS = ("features", "counts", "class_name", "split")
_NAMES = {"features": ("features", "x", "X"), "labels": ("labels", "y"), "split": ("split",)}
"""What the arrays of a file that is imported may be called."""


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """One split of a pack of features, ready for drawing episodes; see `srwm.data.ImageSet`."""

    name: str
    """Pack and split: `mine/train`."""
    features: Float[Tensor, "n f"]
    """All vectors; those of a class lie one after the other."""
    starts: Int64[Tensor, "classes"]
    """Where those of each class begin."""
    counts: Int64[Tensor, "classes"]
    """How many each class has."""
    class_names: tuple[str, ...]
    """What each class is called."""

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @property
    def smallest_class(self) -> tuple[str, int]:
        """Name of the class with the fewest vectors, and how many."""
        index = int(self.counts.argmin())
        return self.class_names[index], int(self.counts[index])

    def to(self, device: torch.device | str) -> "FeatureSet":
        """Give the same set with its tensors on `device`."""
        parts = {name: getattr(self, name).to(device) for name in ("features", "starts", "counts")}
        return replace(self, **parts)


def import_features(paths: Sequence[Path], name: str, folder: Path) -> Path:
    """Make a pack of feature vectors; afterwards `name` is a source of the recipes for features.

    Args:
        paths: a `.npz` file with `features` (or `x`) [n, f] and `labels` (or `y`) [n], numbers or words, and perhaps
            `split` [n], one of "train", "validation" and "test" for each; or two `.npy` files, features and labels.
            Without `split`, classes are split by the hash of their names: 64% train, 16% validation, 20% test.
        name: of the pack.
        folder: the data folder.

    Raises:
        InputError: if the name cannot be used, or the files do not hold such arrays.
    """
    check_name(name)
    what = ", ".join(shown(path) for path in paths)
    arrays = _read(paths)
    features, labels = arrays["features"], arrays["labels"]
    _check(features, labels, what)
    names, class_of = np.unique(labels.astype(str), return_inverse=True)
    order = np.argsort(class_of, kind="stable")
    codes = _split(names, class_of, arrays.get("split"), what)
    path = folder / _FOLDER / f"{name}.npz"
    content: dict[str, NDArray[Any]] = {
        "features": features[order].astype(np.float32),
        "counts": np.bincount(class_of).astype(np.int64),
        "class_name": names,
        "split": codes,
    }
    with atomic_file(path) as file:
        write_npz(file, content)
    return path


def load_features(source: str, split: str, *, folder: Path | None = None) -> FeatureSet:
    """Load one split of a pack of features.

    Args:
        source: name that it was imported under, or the path of a pack.
        split: "train", "validation" or "test".
        folder: the data folder; see `srwm.data.data_folder`.

    Raises:
        InputError: if there is no such pack or split, or the file is broken.
    """
    if split not in SPLIT_CODES:
        raise InputError(f"split={split!r}; expected one of {', '.join(SPLIT_CODES)}")
    path = _find(source, folder)
    arrays = read_npz(path, lambda name: name in _FIELDS)
    problem = _problem(arrays)
    if problem:
        raise InputError(f"{path} is no pack of features: {problem}")
    features, counts, names = arrays["features"], arrays["counts"].astype(np.int64), arrays["class_name"]
    chosen = np.flatnonzero(arrays["split"] == SPLIT_CODES[split])
    if not len(chosen):
        raise InputError(f"{path} has no class in its part {split!r}")
    starts = counts.cumsum() - counts
    rows = np.concatenate([np.arange(starts[index], starts[index] + counts[index]) for index in chosen])
    sizes = torch.from_numpy(counts[chosen])
    return FeatureSet(
        f"{source}/{split}",
        torch.from_numpy(features[rows].astype(np.float32)),
        sizes.cumsum(0) - sizes,
        sizes,
        tuple(str(names[index]) for index in chosen),
    )


def feature_packs(folder: Path) -> list[str]:
    """Name the packs of features in the data folder."""
    return sorted(path.stem for path in (folder / _FOLDER).glob("*.npz") if not path.name.startswith("."))


def _find(source: str, folder: Path | None) -> Path:
    if source.endswith(".npz"):
        return without_tilde(Path(source))
    data = data_folder(folder)
    known = feature_packs(data)
    if source not in known:
        there = f"there are {', '.join(known)}" if known else "there is none yet"
        raise InputError(
            f"there is no pack of features {quoted(source)} in {data / _FOLDER}; {there}: "
            f"`srwm data import features FILE --name NAME` makes one"
        )
    return data / _FOLDER / f"{source}.npz"


def _read(paths: Sequence[Path]) -> dict[str, NDArray[Any]]:
    """Read the arrays of what a user gave."""
    suffixes = [path.suffix for path in paths]
    if suffixes == [".npz"]:
        wanted = {name: field for field, names in _NAMES.items() for name in names}
        found = read_npz(paths[0], lambda name: name in wanted)
        arrays = {wanted[name]: array for name, array in found.items()}
        missing = [names[0] for field, names in _NAMES.items() if field != "split" and field not in arrays]
        if missing:
            raise InputError(f"{shown(paths[0])} has no array {missing[0]!r}; expected features [n, f] and labels [n]")
        return arrays
    if suffixes == [".npy", ".npy"]:
        return {field: _read_npy(path) for field, path in zip(("features", "labels"), paths, strict=True)}
    came = ", ".join(shown(path) for path in paths)
    raise InputError(f"{came} came; expected one .npz file, or two .npy files: features and labels")


def _read_npy(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, allow_pickle=False, mmap_mode="r"))
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        raise InputError(f"{shown(path)} is no sound .npy file of numbers or words: {shown(error)}") from error


def _check(features: NDArray[Any], labels: NDArray[Any], what: str) -> None:
    if features.ndim != 2 or features.dtype.kind not in "fiu" or not features.size:
        raise InputError(f"the features of {what} are {features.dtype} {list(features.shape)}; expected numbers [n, f]")
    if labels.shape != features.shape[:1] or labels.dtype.kind not in "iuU":
        raise InputError(
            f"the labels of {what} are {labels.dtype} {list(labels.shape)}; expected whole numbers or words "
            f"[{len(features)}], one for each vector"
        )
    if not np.isfinite(features).all():
        raise InputError(f"the features of {what} hold NaN or infinite numbers; expected finite ones")
    if np.abs(features).max() > np.finfo(np.float32).max:
        raise InputError(f"the features of {what} hold numbers beyond those of float32; expected smaller ones")


def _split(names: NDArray[Any], class_of: NDArray[np.intp], given: NDArray[Any] | None, what: str) -> NDArray[np.uint8]:
    """Say which part each class is in."""
    if given is None:
        if len(names) < MIN_CLASSES:
            raise InputError(
                f"{what} has {len(names)} classes; expected at least {MIN_CLASSES}, so that there are some to train "
                "on, to validate on and to test on"
            )
        return np.array(split_by_name([str(name) for name in names]), np.uint8)
    if given.shape != class_of.shape or not np.isin(given, list(SPLIT_CODES)).all():
        raise InputError(f"the split of {what} is not one of {', '.join(SPLIT_CODES)} for each of its vectors")
    codes = np.array([SPLIT_CODES[str(word)] for word in given], np.uint8)
    first = np.zeros(len(names), np.uint8)
    first[class_of] = codes
    torn = np.flatnonzero(first[class_of] != codes)
    if len(torn):
        raise InputError(f"class {str(names[class_of[torn[0]]])!r} of {what} is in two parts; expected each in one")
    return first


def _problem(arrays: dict[str, NDArray[Any]]) -> str | None:
    missing = [name for name in _FIELDS if name not in arrays]
    if missing:
        return f"it lacks {', '.join(missing)}"
    features, counts, names, split = (arrays[name] for name in _FIELDS)
    if features.ndim != 2 or features.dtype.kind != "f" or not features.shape[1]:
        return f"its features are {features.dtype} {list(features.shape)}; expected floats [n, f]"
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or not len(counts):
        return f"its counts are {counts.dtype} {list(counts.shape)}; expected whole numbers, one for each class"
    if int(counts.min()) < 1 or int(counts.max()) > len(features) or int(counts.sum()) != len(features):
        return f"its counts do not add up to its {len(features)} vectors"
    if names.shape != counts.shape or names.dtype.kind != "U" or split.shape != counts.shape:
        return f"it does not name {len(counts)} classes and their parts"
    if split.dtype.kind not in "iu" or not np.isin(split, list(SPLIT_CODES.values())).all():
        return "a class is in none of the parts"
    return None if np.isfinite(features).all() else "its features hold NaN or infinite numbers"
