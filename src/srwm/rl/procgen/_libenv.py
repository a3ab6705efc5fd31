"""The C interface that ProcGen's library has ("libenv", version 1), in the words of ctypes."""

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, Structure, c_char, c_char_p, c_int, c_int32, c_uint8, c_void_p
from typing import Any

VERSION = 1
"""The version of the interface that is described here."""
OBSERVATION, ACTION, INFO = 1, 2, 3
"""The numbers of the three spaces."""

_NAME_BYTES, _MAX_DIMENSIONS = 128, 16
_UINT8, _INT32 = 1, 2


class _Option(Structure):
    _fields_ = (("name", c_char * _NAME_BYTES), ("dtype", c_int), ("count", c_int), ("data", c_void_p))


class _Options(Structure):
    _fields_ = (("items", POINTER(_Option)), ("count", c_int))


class TensorType(Structure):
    """The name, the shape and the type of one tensor of a space."""

    _fields_ = (
        ("name", c_char * _NAME_BYTES),
        ("scalar_type", c_int),
        ("dtype", c_int),
        ("shape", c_int * _MAX_DIMENSIONS),
        ("ndim", c_int),
        # Unions of a byte, an integer and a float.
        ("low", c_int32),
        ("high", c_int32),
    )


class Buffers(Structure):
    """Where the library reads actions from and writes everything else to."""

    _fields_ = (
        ("ob", POINTER(c_void_p)),
        ("rew", c_void_p),
        ("first", c_void_p),
        ("info", POINTER(c_void_p)),
        ("ac", POINTER(c_void_p)),
    )


def declare(library: ctypes.CDLL) -> None:
    """Tell ctypes the signatures of the library's functions.

    Raises:
        AttributeError: the library lacks one of them.
    """
    library.libenv_version.argtypes = ()
    library.libenv_version.restype = c_int
    library.libenv_make.argtypes = (c_int, _Options)
    library.libenv_make.restype = c_void_p
    library.libenv_get_tensortypes.argtypes = (c_void_p, c_int, POINTER(TensorType))
    library.libenv_get_tensortypes.restype = c_int
    library.libenv_set_buffers.argtypes = (c_void_p, POINTER(Buffers))
    library.libenv_set_buffers.restype = None
    for function in (library.libenv_observe, library.libenv_act, library.libenv_close):
        function.argtypes = (c_void_p,)
        function.restype = None
    library.get_state.argtypes = (c_void_p, c_int, c_char_p, c_int)
    library.get_state.restype = c_int
    library.set_state.argtypes = (c_void_p, c_int, c_char_p, c_int)
    library.set_state.restype = None


def make(library: ctypes.CDLL, num_envs: int, options: Mapping[str, bool | int | str | bytes]) -> tuple[int, Any]:
    """Open environments; the library ends the process where it does not like an option, so check them first.

    Returns:
        The library's handle, and what must be kept until it is closed.
    """
    items = (_Option * len(options))()
    kept: list[Any] = [items]
    for item, (name, value) in zip(items, options.items(), strict=True):
        data: Any
        if isinstance(value, bool):
            dtype, count, data = _UINT8, 1, c_uint8(value)
        elif isinstance(value, int):
            dtype, count, data = _INT32, 1, c_int32(value)
        else:
            text = value.encode() if isinstance(value, str) else value
            dtype, count, data = _UINT8, len(text), ctypes.create_string_buffer(text)
        item.name, item.dtype, item.count = name.encode(), dtype, count
        item.data = ctypes.addressof(data)
        kept.append(data)
    handle = library.libenv_make(num_envs, _Options(items, len(items)))
    return int(handle), kept


def tensor_shapes(library: ctypes.CDLL, handle: int, space: int) -> dict[str, tuple[int, ...]]:
    """Give the names and shapes of a space's tensors, in the library's order."""
    count = library.libenv_get_tensortypes(handle, space, None)
    types = (TensorType * count)()
    library.libenv_get_tensortypes(handle, space, types)
    return {kind.name.decode(): tuple(kind.shape[: kind.ndim]) for kind in types}


def pointers(addresses: list[int]) -> "ctypes.Array[c_void_p]":
    """Make the array of addresses that `Buffers` wants, one for each tensor and environment."""
    return (c_void_p * len(addresses))(*addresses)
