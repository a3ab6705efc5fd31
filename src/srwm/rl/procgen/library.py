"""Finds and opens the official library of ProcGen 0.10.7."""

import ctypes
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from srwm.data.places import data_folder
from srwm.data.procgen import procgen_folder
from srwm.errors import InputError

from . import _libenv

FILE_NAME = "libenv.dylib" if sys.platform == "darwin" else "libenv.so"
"""What the library is called on this system."""
NUM_PICTURES = 1288
"""How many pictures the games are drawn with; the library ends the process where one is missing."""

_HOW_TO_GET = "run `srwm data fetch procgen`"
_MISSING = re.compile(r"(\S+\.so[.0-9]*): cannot open shared object file|Library not loaded: (\S+)")
_PACKAGES = {
    "libglib-2.0": "GLib (Debian, Ubuntu: libglib2.0-0; Fedora: glib2)",
    "libgthread-2.0": "GLib (Debian, Ubuntu: libglib2.0-0; Fedora: glib2)",
    "libpcre2-8": "PCRE2 (Debian, Ubuntu: libpcre2-8-0; Fedora: pcre2)",
    "libGL": "OpenGL (Debian, Ubuntu: libgl1; Fedora: mesa-libGL)",
    "libz": "zlib (Debian, Ubuntu: zlib1g; Fedora: zlib)",
}
"""What holds the system libraries that bare machines lack."""


@dataclass(frozen=True)
class LibraryFiles:
    """Where the library and its pictures are."""

    library: Path
    pictures: Path

    @property
    def carried(self) -> list[Path]:
        """System libraries that were put into the folder `lib` beside the library, for machines that lack them."""
        folder = self.library.parent / "lib"
        return sorted(path for path in folder.iterdir() if ".so" in path.name) if folder.is_dir() else []


def find_library() -> LibraryFiles:
    """Find the library: `$PROCGEN_ROOT`, else an installed `procgen` package, else what `srwm data fetch` brought.

    Raises:
        InputError: it is nowhere, or a part of it is missing; the sentence says what to do.
    """
    root = os.environ.get("PROCGEN_ROOT")
    if root:
        for folder in (Path(root).expanduser(), Path(root).expanduser() / "procgen"):
            if found := _files_in(folder):
                return found
        raise InputError(
            f"PROCGEN_ROOT is {root}, but there is no {FILE_NAME} with a folder of assets beside it; name the folder "
            f"of the package procgen, or unset PROCGEN_ROOT and {_HOW_TO_GET}"
        )
    for folder in [*_installed_packages(), procgen_folder(data_folder()) / "procgen"]:
        if found := _files_in(folder):
            return found
    raise InputError(
        f"the games of ProcGen are not in {data_folder()}: {_HOW_TO_GET}, or name the folder of the package procgen "
        "with PROCGEN_ROOT"
    )


def load_library() -> tuple[ctypes.CDLL, LibraryFiles]:
    """Open the library; once in a process and place.

    Returns:
        The library, its functions declared, and where its files are.

    Raises:
        InputError: it is missing, broken, or lacks a library of the system.
    """
    files = find_library()
    return _load(files), files


@functools.lru_cache(maxsize=8)
def _load(files: LibraryFiles) -> ctypes.CDLL:
    _check_pictures(files.pictures)
    try:
        library = _open(files)
        _libenv.declare(library)
        version = library.libenv_version()
    except OSError as error:
        raise _cannot_open(files, error) from error
    except AttributeError as error:
        raise InputError(f"{files.library} is no library of ProcGen ({error}); {_HOW_TO_GET}") from error
    if version != _libenv.VERSION:
        raise InputError(
            f"{files.library}: expected version {_libenv.VERSION} of libenv, as in ProcGen 0.10.7, got {version}"
        )
    return library


def _installed_packages() -> Iterator[Path]:
    """Give the folders of an installed package named procgen, which is not imported: it would want gym."""
    try:
        spec = importlib.util.find_spec("procgen")
    except ValueError:  # Something else stands under that name in `sys.modules`.
        return
    if spec is not None:
        yield from map(Path, spec.submodule_search_locations or ())


def _files_in(folder: Path) -> LibraryFiles | None:
    """Find the library in a folder: laid out as in the package, or with both parts right there."""
    for library, pictures in (
        (folder / "data" / "prebuilt" / FILE_NAME, folder / "data" / "assets"),
        (folder / FILE_NAME, folder / "assets"),
    ):
        if library.is_file() and pictures.is_dir():
            return LibraryFiles(library.resolve(), pictures.resolve())
    return None


def _check_pictures(folder: Path) -> None:
    """Count the pictures, since the library would end the process where one is missing."""
    count = sum(name.endswith((".png", ".jpg")) for _, _, names in os.walk(folder) for name in names)
    if count < NUM_PICTURES:
        raise InputError(
            f"{folder} has {count} of the {NUM_PICTURES} pictures that ProcGen draws with; "
            "run `srwm data fetch procgen --again`"
        )


def _open(files: LibraryFiles) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(files.library))
    except OSError:
        if not files.carried:
            raise
    # What the system has is better than what was carried here, so this comes second.
    _preload(files.carried)
    return ctypes.CDLL(str(files.library))


def _preload(paths: list[Path]) -> None:
    """Open libraries that need each other, in an order that works."""
    left = paths
    while left:
        failed = []
        for path in left:
            try:
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                failed.append((path, error))
        if len(failed) == len(left):
            raise failed[0][1]
        left = [path for path, _ in failed]


def _cannot_open(files: LibraryFiles, error: OSError) -> InputError:
    """Say why the library does not open, and what to install."""
    found = _MISSING.search(str(error))
    if not found:
        return InputError(f"{files.library} cannot be opened on this machine: {error}")
    missing = Path(found[1] or found[2]).name
    package = _PACKAGES.get(missing.partition(".so")[0], "what holds it")
    return InputError(
        f"ProcGen's library needs {missing}, which this machine lacks: install {package}, or put the file into "
        f"{files.library.parent / 'lib'}"
    )
