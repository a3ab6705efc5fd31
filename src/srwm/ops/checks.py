"""What both operators ask of their arguments, as sentences."""

import math
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
"""The dtypes that are computed with."""


def is_whole(value: object) -> bool:
    """Whether this is a whole number: True equals 1 and 4.0 equals 4, but neither is a number of columns."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_number(value: object) -> bool:
    """Whether this is a real number that is no bool; it may be infinite, but not NaN."""
    # NaN is at no side of infinity; torch.compile, which can trace comparisons, cannot trace `math.isnan`.
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf <= value <= math.inf


def check_forget_range(*, forget_min: float, forget_max: float, forget_bias: float) -> None:
    """Refuse gates that could let go of nothing they are asked for, or of more than there is."""
    for name, value in (("forget_min", forget_min), ("forget_max", forget_max), ("forget_bias", forget_bias)):
        if not is_number(value):
            raise ValueError(f"{name}={value!r}; expected a number")
    if not 0 <= forget_min <= forget_max < 1:
        raise ValueError(
            f"forget_min={forget_min}, forget_max={forget_max}; expected 0 <= forget_min <= forget_max < 1"
        )
    if not -math.inf < forget_bias < math.inf:
        raise ValueError(f"forget_bias={forget_bias}; expected a finite number")


def check_tensor(name: str, tensor: object) -> None:
    """Refuse what is not a tensor, and tensors that are not a block of numbers: sparse and nested ones."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{name} is of type {type(tensor).__name__}; expected a torch.Tensor")
    if tensor.is_nested:
        raise ValueError(f"{name} is a nested tensor; expected a dense one, with sequences padded to one length")
    if tensor.layout is not torch.strided:
        raise ValueError(f"{name} has layout {tensor.layout}; expected a dense tensor: convert it with .to_dense()")


def check_shape(name: str, tensor: Tensor, wanted: tuple[int, ...], letters: str) -> None:
    """Refuse a tensor whose shape is not `wanted`; `letters` names the axes in the message."""
    check_tensor(name, tensor)
    if tensor.shape != wanted:
        raise ValueError(f"{name} has shape {list(tensor.shape)}; expected {letters} = {list(wanted)}")


def check_floating(**tensors: Tensor | None) -> None:
    """Refuse tensors that are not real floating point of 16 bits or more, and tensors on different devices."""
    device = None
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if tensor.dtype not in FLOATS:
            raise ValueError(f"{name} has dtype {tensor.dtype}; expected a floating-point tensor of 16, 32 or 64 bits")
        if device is None:
            device, first = tensor.device, name
        elif tensor.device != device:
            raise ValueError(f"{name} is on {tensor.device} but {first} is on {device}; move them to one device")


def check_reset(reset: Tensor | None, b: int, t: int, device: torch.device) -> None:
    """Refuse a reset mask that is not bool [b, t] on the same device."""
    if reset is None:
        return
    check_shape("reset", reset, (b, t), "[b, t]")
    if reset.dtype != torch.bool:
        raise ValueError(f"reset has dtype {reset.dtype}; expected torch.bool, true where an episode begins")
    if reset.device != device:
        raise ValueError(f"reset is on {reset.device} but the inputs are on {device}; move them to one device")


def refuse_derivative_transforms(operator: str) -> None:
    """Refuse the derivatives of `torch.func`, which a kernel does not have; its `vmap` by itself calls the kernel."""
    # A graph being compiled knows none.
    if torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active():
        return
    if any(layer.key() in (TransformType.Grad, TransformType.Jvp) for layer in get_interpreter_stack() or ()):
        raise RuntimeError(
            f"{operator} was called inside a derivative of torch.func (grad, vjp, jacrev, jvp, ...), which a fast "
            'backend does not have; pass backend="reference"'
        )


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Have einsums keep their dtype: autocast would run those of a reference in half precision."""
    # There is no autocast for tensors without numbers.
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


def state_dtype(*tensors: Tensor) -> torch.dtype:
    """The dtype the recurrence runs in and its state is kept in: never below float32."""
    dtype = torch.float32
    for tensor in tensors:
        if tensor.dtype != dtype:
            dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor in another dtype; asking first is quicker than a call of `to` that has nothing to do."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)
