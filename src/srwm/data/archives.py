"""Reads the members of zip and tar archives in memory; a member that looks like an attack refuses the whole archive.

Nothing is ever unpacked to disk. The names are checked all the same: an archive with a name like `../x` is not the one
that its publisher made.
"""

import bz2
import contextlib
import gzip
import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from srwm.errors import InputError
from srwm.runs.reading import open_file

from ._bounded_reader import BoundedReader, Readable
from ._shown import quoted, shown

MAX_MEMBERS = 200_000
"""No archive may hold more members."""
MAX_BYTES = 4 * 2**30
"""The members of an archive may not add up to more bytes, unpacked."""

_MAX_HEADER_BYTES = 2**14
"""No header of a tar may be larger: one that holds a long name has a few hundred bytes."""
_MAX_DIRECTORY_BYTES = 2**26
"""The list of a zip's members may not be larger."""

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
    IndexError,
    OverflowError,
    MemoryError,
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
    with open_file(path) as file:
        try:
            yield from _read_members(file, _Census(path, max_members, max_bytes))
        except InputError:
            raise
        except _BROKEN as error:
            raise InputError(f"{path} is not an archive that can be read: {shown(error)}") from error


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
        if size < 0:
            problem = f"has {size} bytes"
        if problem:
            raise InputError(f"{self.path} is refused: its member {quoted(name)} {problem}")
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


def _read_members(file: BinaryIO, census: _Census) -> Iterator[tuple[str, bytes]]:
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"PK"):
        yield from _read_zip(file, census)
        return
    unpack = next((opener for start, opener in _COMPRESSED.items() if magic.startswith(start)), None)
    if unpack is None:
        yield from _read_tar(file, census)
        return
    with contextlib.closing(unpack(file)) as unpacked:
        yield from _read_tar(unpacked, census)


_COMPRESSED: dict[bytes, Callable[[BinaryIO], Readable]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
"""How a compressed tar begins, and what unpacks it."""


def _read_zip(file: BinaryIO, census: _Census) -> Iterator[tuple[str, bytes]]:
    reader = BoundedReader(file, str(census.path), _MAX_DIRECTORY_BYTES)
    with zipfile.ZipFile(reader) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            problem = None
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                problem = "is a link or a device, not a file"
            elif info.flag_bits & 1:
                problem = "is encrypted"
            # Others unpack a few bytes to gigabytes at one call.
            elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                problem = f"is compressed by method {info.compress_type}; expected none or deflate"
            # `filename` is what zipfile made of it: cut at a zero byte, with other slashes.
            census.count(info.orig_filename, info.file_size, problem)
        for info in archive.infolist():
            if not info.is_dir():
                with archive.open(info) as member:
                    # Told how much there is, `read` unpacks no more; having read so much, it checks the sum.
                    content = member.read(info.file_size) if info.file_size else b""
                if len(content) != info.file_size:
                    raise ValueError(f"{quoted(info.filename)} ends too early")
                yield info.filename, content


def _read_tar(file: Readable, census: _Census) -> Iterator[tuple[str, bytes]]:
    reader = BoundedReader(file, str(census.path), _MAX_HEADER_BYTES)
    with tarfile.open(fileobj=reader, mode="r:") as archive:  # type: ignore[call-overload]
        for member in archive:
            plain = (member.isreg() and not member.issparse()) or member.isdir()
            census.count(member.name, member.size, None if plain else "is a link or a device, not a file")
        reader.limit = None
        for member in archive.getmembers():
            content = archive.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, content.read()
