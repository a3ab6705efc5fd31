"""NumPy `.npz` files without pickles: every size is checked before memory is asked for."""

import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from srwm.errors import InputError

MAX_BYTES = 16 * 2**30
"""No array of a file may be larger than this."""

# What `zipfile` and NumPy's header reader raise for bytes that are not what they claim to be.
_BROKEN = (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError, SyntaxError, KeyError)
_HEADER_READERS: dict[tuple[int, int], Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}


def read_npz(path: Path, wanted: Callable[[str], bool]) -> dict[str, NDArray[Any]]:
    """Read the arrays of a `.npz` file whose name is `wanted`.

    Raises:
        InputError: the file is missing or is not a sound `.npz` file without pickles.
    """
    arrays: dict[str, NDArray[Any]] = {}
    member = ""
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                member = info.filename.removesuffix(".npy")
                if member in arrays:
                    raise InputError(f"{path} is broken: it holds {member!r} twice")
                if wanted(member):
                    arrays[member] = _read_array(archive, info)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist") from error
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path} is broken: {error}") from error
    except _BROKEN as error:
        where = f" at {member!r}" if member else ""
        raise InputError(f"{path} is broken{where}: {error}") from error
    except MemoryError as error:
        raise InputError(f"{path} is broken, or too large for this machine's memory, at {member!r}") from error
    return arrays


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    if info.file_size > MAX_BYTES:
        raise InputError(f"{info.filename!r} claims {info.file_size} bytes; more than {MAX_BYTES} are not read")
    with archive.open(info) as file:
        version = npy.read_magic(file)
        if version not in _HEADER_READERS:
            raise InputError(f"{info.filename!r} has the unknown format number {version}")
        shape, fortran_order, dtype = _HEADER_READERS[version](file)
        if dtype.hasobject:
            raise InputError(f"{info.filename!r} holds Python objects, which are never read")
        data = file.read()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise InputError(f"{info.filename!r} says shape {shape} of {dtype}, but holds {len(data)} bytes")
    return np.ndarray(shape, dtype, data, order="F" if fortran_order else "C")


def write_npz(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as a `.npz` file; equal arrays give equal bytes."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            # A `ZipInfo` of its own has a fixed date.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
