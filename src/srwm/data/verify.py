"""Checks packs: every image, the numbers of classes and images, the splits."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from srwm.errors import InputError

from .decode import cut_tiles, decoded, quiet_pillow
from .load import classes_of, has_parts
from .pack import SPLIT_CODES, Pack, read_pack
from .sources import SOURCES, Source

MAX_PROBLEMS = 10
"""So many problems are listed; of a file with more than that, the rest is not news."""


def verify_pack(path: Path) -> list[str]:
    """Check a pack and say what is wrong with it, a sentence each; nothing if all is well."""
    try:
        pack = read_pack(path)
    except InputError as error:
        return [str(error)]
    problems = problems_of_numbers(pack)
    with quiet_pillow(), ThreadPoolExecutor() as pool:
        for found in pool.map(lambda index: _problems_of_class(pack, index), range(pack.num_classes)):
            problems += found
    rest = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], f"{path} has {rest} more problems of this kind"] if rest > 0 else problems


def problems_of_numbers(pack: Pack) -> list[str]:
    """Compare a pack with what is known of the sources that read it."""
    problems = []
    for source in SOURCES.values():
        if source.pack == pack.path.name:
            problems += _problems_with_source(pack, source)
    return problems


def _problems_with_source(pack: Pack, source: Source) -> list[str]:
    problems = []
    parts = {}
    for split, wanted in zip(SPLIT_CODES, source.classes, strict=True):
        try:
            parts[split] = classes_of(pack, source, split)
        except InputError as error:
            return [str(error)]
        if len(parts[split]) != wanted:
            problems.append(
                f"expected {wanted} classes in the {split} part of {source.name}, "
                f"but {pack.path} has {len(parts[split])}"
            )
    if has_parts(pack, source):
        return problems
    problems += [
        f"{pack.path} has {pack.count_of(index)} images of class {pack.full_name(index)!r}; "
        f"expected {source.images_per_class}"
        for index in sorted(index for indices in parts.values() for index in indices)
        if pack.count_of(index) != source.images_per_class
    ]
    return problems


def _problems_of_class(pack: Pack, index: int) -> list[str]:
    problems = []
    for number, (data, _) in enumerate(pack.files_of(index)):
        what = f"image file {number} of class {pack.full_name(index)!r} in {pack.path}"
        try:
            with decoded(data, 3, what) as sheet:
                cut_tiles(sheet, pack.tiles, what)
        except InputError as error:
            problems.append(str(error))
    return problems
