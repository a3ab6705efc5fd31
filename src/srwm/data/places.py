"""Where packs lie on this machine."""

import os
from pathlib import Path

from srwm.errors import InputError

from .procgen import NAME as PROCGEN
from .sources import FOLDER_PREFIX, SOURCES, Source, unknown_source


def data_folder(flag: Path | None = None) -> Path:
    """Name the folder of packs: `flag`, else `$SRWM_DATA`, else the user's cache folder."""
    if flag is not None:
        return flag.expanduser()
    named = os.environ.get("SRWM_DATA")
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "srwm" / "data"


def own_packs(folder: Path) -> list[str]:
    """Name the packs in a folder that are no source of the table: those that users imported."""
    known = {source.pack for source in SOURCES.values()}
    names = os.listdir(folder) if folder.is_dir() else []
    return sorted(
        name.removesuffix(".npz")
        for name in names
        if name.endswith(".npz") and not name.startswith(".") and name not in known
    )


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
    if not (letters.isascii() and letters.isalnum() and name[0].isalnum() and name == name.lower()):
        raise InputError(f"{name!r} cannot be a pack's name; wanted lower-case letters, digits, - and _")
