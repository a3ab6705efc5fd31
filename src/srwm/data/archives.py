"""Reads the members of zip and tar archives in memory; a member that looks like an attack refuses the whole archive.

Nothing is ever unpacked to disk. The names are checked all the same: an archive with a name like `../x` is not the one
that its publisher made.
"""

import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from srwm.errors import InputError

MAX_MEMBERS = 200_000
"""No archive may hold more members."""
MAX_BYTES = 4 * 2**30
"""The members of an archive may not add up to more bytes, unpacked."""

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""What the readers of archives raise for bytes that are not what they claim to be."""
_DRIVE = re.compile(r"[A-Za-z]:")


def read_members(
    path: Path, *, max_members: int = MAX_MEMBERS, max_bytes: int = MAX_BYTES
) -> Iterator[tuple[str, bytes]]:
    """Give the names and contents of an archive's files, one by one; all names and sizes are checked before the first.

    Args:
        path: a zip or tar archive (plain or compressed).
        max_members: refuse an archive with more members.
        max_bytes: refuse an archive whose members add up to more bytes, unpacked.

    Raises:
        InputError: the archive is missing, broken, too large, or has a member that is not a plain file inside of it.
    """
    try:
        yield from _read_members(path, _Census(path, max_members, max_bytes))
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist") from error
    except InputError:
        raise
    except _BROKEN as error:
        raise InputError(f"{path} is not an archive that can be read: {error}") from error


class _Census:
    """Counts the members of an archive and checks each."""

    def __init__(self, path: Path, max_members: int, max_bytes: int) -> None:
        self.path = path
        self.max_members = max_members
        self.max_bytes = max_bytes
        self.names: set[str] = set()
        self.num_bytes = 0

    def count(self, name: str, size: int, problem: str | None) -> None:
        """Check one member.

        Args:
            name: its name, as it stands in the archive.
            size: how many bytes it says it has, unpacked.
            problem: what its kind of archive has against it, if anything.
        """
        plain = "/".join(part for part in name.split("/") if part not in ("", "."))
        problem = problem or _problem_of_name(name)
        if plain in self.names:
            problem = "is there twice"
        if problem:
            raise InputError(f"{self.path} is refused: its member {name!r} {problem}")
        self.names.add(plain)
        self.num_bytes += size
        if len(self.names) > self.max_members:
            raise InputError(f"{self.path} is refused: it has more than {self.max_members} members")
        if self.num_bytes > self.max_bytes:
            raise InputError(f"{self.path} is refused: it unpacks to more than {self.max_bytes} bytes")


def _problem_of_name(name: str) -> str | None:
    if not name or any(ord(letter) < 32 for letter in name):
        return "has no proper name"
    if name.startswith(("/", "\\")) or _DRIVE.match(name):
        return "has an absolute path"
    if "\\" in name or ".." in name.split("/"):
        return "leads out of the archive's folder"
    return None


def _read_members(path: Path, census: _Census) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    reader: Callable[[Path, _Census], Iterator[tuple[str, bytes]]] = _read_zip if is_zip else _read_tar
    yield from reader(path, census)


def _read_zip(path: Path, census: _Census) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            problem = None
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                problem = "is a link or a device, not a file"
            elif info.flag_bits & 1:
                problem = "is encrypted"
            # `filename` is what zipfile made of it: cut at a zero byte, with other slashes.
            census.count(info.orig_filename, info.file_size, problem)
        for info in archive.infolist():
            if not info.is_dir():
                # zipfile reads no more bytes than `file_size` says, and checks the sum of what it has read.
                yield info.filename, archive.read(info)


def _read_tar(path: Path, census: _Census) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        for member in archive:
            plain = (member.isreg() and not member.issparse()) or member.isdir()
            census.count(member.name, member.size, None if plain else "is a link or a device, not a file")
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.isreg() else None
            if file is not None:
                yield member.name, file.read()
