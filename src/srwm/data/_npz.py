"""NumPy `.npz` files without pickles: every size is checked before memory is asked for."""

import math
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from srwm.errors import InputError
from srwm.runs.reading import open_file

from ._bounded_reader import BoundedReader
from ._memory import memory_bytes
from ._shown import quoted, shown

MAX_BYTES = 16 * 2**30
"""The arrays of a file may not be larger than this, all together."""

_MAX_DIRECTORY_BYTES = 2**24
"""The zip's list of its members may not be larger."""
_MAX_DEFLATE_RATIO = 1032
"""So many bytes come of one at the most, by the format's definition."""
_ENCRYPTED = 0x1
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    TypeError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
)
"""What `zipfile` and NumPy raise for bytes that are not what they claim to be."""
_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
"""By format number: how many bytes say how long the header is."""
# NumPy reads a header with Python's own parser; that of a plain array needs none.
_HEADER = re.compile(
    rb"\{'descr': '([^']{0,30})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\),? ?\}[ \n]*"
)
_PLAIN_TYPE = re.compile(rb"[<>|=]?[biufcSU][0-9]{1,9}")


def read_npz(path: Path, wanted: Callable[[str], bool]) -> dict[str, NDArray[Any]]:
    """Read the arrays of a `.npz` file whose name is `wanted`.

    Raises:
        InputError: the file is missing or is not a sound `.npz` file without pickles.
    """
    arrays: dict[str, NDArray[Any]] = {}
    where = ""
    with open_file(path) as file:
        reader = BoundedReader(file, str(path), _MAX_DIRECTORY_BYTES)
        try:
            with zipfile.ZipFile(reader) as archive:
                members = _check_members(archive, wanted, file.seek(0, 2))
                reader.limit = None
                for name, info in members.items():
                    where = f" at {quoted(name)}"
                    arrays[name] = _read_array(archive, info)
        except InputError as error:
            raise InputError(str(error) if str(path) in str(error) else f"{path} is broken: {error}") from error
        except _BROKEN as error:
            raise InputError(f"{path} is broken{where}: {shown(error)}") from error
        except MemoryError as error:
            raise InputError(f"{path} is broken, or too large for this machine's memory{where}") from error
    return arrays


def _check_members(
    archive: zipfile.ZipFile, wanted: Callable[[str], bool], file_bytes: int
) -> dict[str, zipfile.ZipInfo]:
    """List the members to read, after all that the zip says of them has been checked.

    Raises:
        InputError: a name is there twice, or what is said cannot be true or is too much.
    """
    names: set[str] = set()
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in names:
            raise InputError(f"it holds {quoted(name)} twice")
        names.add(name)
        if not wanted(name):
            continue
        if info.flag_bits & _ENCRYPTED:
            raise InputError(f"{quoted(info.filename)} is encrypted")
        # Other methods unpack a few bytes to gigabytes at one call, and NumPy writes none of them.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(
                f"{quoted(info.filename)} is compressed by method {info.compress_type}; "
                f"expected {zipfile.ZIP_STORED} (none) or {zipfile.ZIP_DEFLATED} (deflate)"
            )
        is_stored = info.compress_type == zipfile.ZIP_STORED
        most = info.compress_size * (1 if is_stored else _MAX_DEFLATE_RATIO)
        if info.compress_size > file_bytes or info.file_size > most:
            raise InputError(f"{quoted(info.filename)} claims {info.file_size} bytes, more than the file can hold")
        members[name] = info
    total, memory = sum(info.file_size for info in members.values()), memory_bytes()
    if total > MAX_BYTES:
        raise InputError(f"its arrays claim {total} bytes; more than {MAX_BYTES} are not read")
    if memory is not None and total > memory:
        raise InputError(f"its arrays claim {total} bytes; this machine's memory has {memory}")
    return members


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as file:
        # Told how much there is, `read` unpacks no more; having read so much, it checks the sum.
        data = file.read(info.file_size) if info.file_size else b""
    start = len(_MAGIC) + 2
    version = (data[start - 2], data[start - 1]) if data.startswith(_MAGIC) and len(data) >= start else None
    if version is None:
        raise InputError(f"{quoted(info.filename)} is no NumPy array")
    if version not in _LENGTH_BYTES:
        raise InputError(f"{quoted(info.filename)} has the unknown format number {version}")
    header = start + _LENGTH_BYTES[version]
    end = header + int.from_bytes(data[start:header], "little")
    found = _HEADER.fullmatch(data[header:end]) if end <= len(data) else None
    if found is None:
        raise InputError(f"{quoted(info.filename)} has not the header of a plain array")
    dtype = _dtype(found[1], info.filename)
    shape = tuple(int(number) for number in found[3].replace(b" ", b"").split(b",") if number)
    if math.prod(shape) * dtype.itemsize != len(data) - end or dtype.itemsize == 0:
        raise InputError(f"{quoted(info.filename)} says shape {shape} of {dtype}, but holds {len(data) - end} bytes")
    return np.ndarray(shape, dtype, data, offset=end, order="F" if found[2] == b"True" else "C")


def _dtype(description: bytes, name: str) -> np.dtype[Any]:
    if description[-1:] == b"O":
        raise InputError(f"{quoted(name)} holds Python objects, which are never read")
    if not _PLAIN_TYPE.fullmatch(description):
        raise InputError(f"{quoted(name)} holds {description.decode('latin-1')!r}; expected numbers or texts")
    return np.dtype(description.decode("ascii"))


def write_npz(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a `.npz` file; equal arrays give equal bytes."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            # A `ZipInfo` of its own has a fixed date.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
