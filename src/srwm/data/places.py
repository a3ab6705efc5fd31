"""Where packs lie on this machine."""

import os
import stat
from pathlib import Path

from srwm.errors import InputError

from ._shown import quoted, shown
from .procgen import NAME as PROCGEN
from .sources import FOLDER_PREFIX, SOURCES, Source, unknown_source

_LONGEST_NAME = 100
"""Of a pack; the longest name of a file has 255 bytes, and while it is written it has more than its own."""


def data_folder(flag: Path | None = None) -> Path:
    """Name the folder of packs: `flag`, else `$SRWM_DATA`, else the user's cache folder.

    Raises:
        InputError: what is named cannot be a folder.
    """
    named, cache = os.environ.get("SRWM_DATA"), os.environ.get("XDG_CACHE_HOME")
    if flag is not None or named:
        folder = without_tilde(Path(named or "") if flag is None else flag)
    else:
        folder = (Path(cache) if cache else without_tilde(Path("~/.cache"))) / "srwm" / "data"
    try:
        is_folder = stat.S_ISDIR(folder.stat().st_mode)
    except FileNotFoundError:
        is_folder = True  # It is made when something is put into it.
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"{shown(folder)} cannot be the data folder: {problem}") from error
    if not is_folder:
        raise InputError(f"{shown(folder)} is not a folder; expected the data folder, or the name of one to be made")
    return folder


def without_tilde(path: Path) -> Path:
    """Put the user's home in the place of `~`.

    Raises:
        InputError: there is no such user, or the user has no home.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise InputError(f"{shown(path)} is in the home of a user that has none here; write the whole path") from error


def own_packs(folder: Path) -> list[str]:
    """Name the packs in a folder that are no source of the table: those that users imported."""
    known = {source.pack for source in SOURCES.values()}
    try:
        names = os.listdir(folder) if folder.is_dir() else []
        return sorted(
            name.removesuffix(".npz")
            for name in names
            # No import gave a name that cannot be printed, and none made anything but a file.
            if name.endswith(".npz") and not name.startswith(".") and name.isprintable() and (folder / name).is_file()
            if name not in known
        )
    except OSError as error:
        raise InputError(f"the data folder {folder} cannot be read: {error.strerror or error}") from error


def find_source(name: str, folder: Path) -> Source:
    """Find a source by name: one of the table, or a pack that the user imported.

    Raises:
        InputError: there is none of that name.
    """
    if name in SOURCES:
        return SOURCES[name]
    own = own_packs(folder)
    if name not in own:
        raise unknown_source(name, own)
    return Source(
        name=name,
        title=name,
        about="A pack of your own.",
        licence="",
        how_to_get=f"run `srwm data import folder PATH --name {name}`",
        pack=f"{name}.npz",
    )


def pack_path(source: Source, folder: Path) -> Path:
    """Give the path of a source's pack.

    Raises:
        InputError: it is not there; the sentence says how to get it.
    """
    if source.pack is None:
        raise InputError(f"{source.name} has no pack: it is drawn when it is asked for")
    path = folder / source.pack
    if not path.is_file():
        raise InputError(
            f"{source.name} is not in {folder}: {source.how_to_get}, or name the folder with --data or SRWM_DATA"
        )
    return path


def check_name(name: str) -> None:
    """Refuse a name for a user's pack that is taken or that a file cannot have everywhere.

    Raises:
        InputError: the name cannot be used.
    """
    taken = {PROCGEN, *SOURCES, *(source.pack.removesuffix(".npz") for source in SOURCES.values() if source.pack)}
    if name in taken or name.startswith(FOLDER_PREFIX):
        raise InputError(f"the name {name!r} is taken by a source of this library; choose another")
    letters = name.replace("-", "").replace("_", "")
    if len(name) > _LONGEST_NAME:
        raise InputError(f"{quoted(name)} cannot be a pack's name; expected at most {_LONGEST_NAME} letters")
    if not (letters.isascii() and letters.isalnum() and name[0].isalnum() and name == name.lower()):
        raise InputError(f"{quoted(name)} cannot be a pack's name; expected lower-case letters, digits, - and _")
