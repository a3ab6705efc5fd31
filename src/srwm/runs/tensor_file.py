"""Tensors out of safetensors files, and the question whether they are what a model or a training can take."""

from collections.abc import Mapping
from pathlib import Path

import safetensors
import torch
from torch import Tensor

from srwm.errors import InputError

__all__ = ["check_fits", "copy_tensors", "read_tensors", "restore_group"]

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
    "C64": torch.complex64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
}
"""The words of the format for what torch has as well, number by number; it has further ones of less than a byte."""

_WEIGHTS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
"""What a weight may be stored as."""


def read_tensors(data: bytes, file: Path) -> dict[str, Tensor]:
    """Read the content of a safetensors file.

    Returns:
        The tensors by name, on the CPU; they do not share memory with `data`.

    Raises:
        InputError: if it is no such file, or holds what torch has no tensor for.
    """
    try:
        entries = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise InputError(f"{file} is not a safetensors file: {error}") from None
    tensors = {}
    for name, entry in entries:
        word, shape = entry["dtype"], entry["shape"]
        if word not in _DTYPES:
            raise InputError(f"{file} is of no use here: {name} holds {word}; expected one of {', '.join(_DTYPES)}")
        # Sizes whose product is 0 take no room in the file, and may be beyond what torch can count.
        if any(size >= 2**31 for size in shape):
            raise InputError(f"{file} is broken: {name} has shape {shape}; expected sizes below 2**31")
        dtype = _DTYPES[word]
        tensors[name] = (
            torch.frombuffer(entry["data"], dtype=dtype).reshape(shape) if entry["data"] else _empty(shape, dtype)
        )
    return tensors


def check_fits(own: Mapping[str, Tensor], given: Mapping[str, Tensor], origin: Path | str, *, finite: bool) -> None:
    """Refuse tensors that are not, name by name, of the shape and the type that is wanted.

    Args:
        own: what is to be filled; tensors on the device "meta" will do.
        given: what it is to be filled with, on the CPU.
        origin: where that stood, for the sentence.
        finite: whether floats must be finite, in the dtype that they are to have.

    Raises:
        InputError: if they do not fit; it names the tensor.
    """
    for name in sorted({*own, *given}):
        came, wanted = (list(each[name].shape) if name in each else "absent" for each in (given, own))
        if came != wanted:
            raise InputError(f"{origin} is of another model: {name} is {came} there and {wanted} here")
        dtypes = _WEIGHTS if own[name].is_floating_point() else (own[name].dtype,)
        if given[name].dtype not in dtypes:
            names = " or ".join(map(_dtype_name, dtypes))
            raise InputError(f"{origin} cannot be used: {name} is {_dtype_name(given[name].dtype)}; expected {names}")
        if finite and own[name].is_floating_point():
            _check_finite(name, given[name].to(own[name].dtype), origin)


def copy_tensors(
    own: Mapping[str, Tensor], given: Mapping[str, Tensor], origin: Path | str, *, finite: bool = False
) -> None:
    """Fill tensors in place, after all of them were found to fit; see `check_fits`."""
    check_fits(own, given, origin, finite=finite)
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(given[name])


def restore_group(own: Mapping[str, Tensor], groups: Mapping[str, Mapping[str, Tensor]], group: str) -> None:
    """Fill tensors in place with those of a group of a checkpoint, after all of them were found to fit.

    Raises:
        InputError: if there is no such group, or it belongs to another model.
    """
    if group not in groups:
        raise InputError(f"the checkpoint has no {group!r}; it has {', '.join(groups) or 'no tensors'}")
    is_model = group == "weights"
    copy_tensors(own, groups[group], "the checkpoint" if is_model else f"the checkpoint's {group}", finite=is_model)


def _empty(shape: list[int], dtype: torch.dtype) -> Tensor:
    # No tensor is made of the other sizes: with 0 among them, their product may still be too large for torch's strides.
    blank = torch.empty(0, dtype=dtype)
    return blank.as_strided(shape, [0] * len(shape)) if shape else blank


def _check_finite(name: str, tensor: Tensor, origin: Path | str) -> None:
    is_bad = ~torch.isfinite(tensor)
    count = int(is_bad.sum())
    if count:
        first = float(tensor[is_bad][0])
        raise InputError(
            f"{origin} cannot be used: {name} is not finite in {count:,} of its {tensor.numel():,} numbers, the first "
            f"of them {first}; expected finite weights"
        )


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
