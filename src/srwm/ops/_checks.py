"""What both operators ask of their arguments, as sentences."""

import torch
from torch import Tensor


def check_shape(name: str, tensor: Tensor, wanted: tuple[int, ...], letters: str) -> None:
    """Refuse a tensor whose shape is not `wanted`; `letters` names the axes in the message."""
    if tensor.shape != wanted:
        raise ValueError(f"{name} has shape {list(tensor.shape)}; wanted {letters} = {list(wanted)}")


def check_floating(**tensors: Tensor | None) -> None:
    """Refuse tensors that are not real floating point, and tensors on different devices."""
    device = None
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if not tensor.is_floating_point():
            raise ValueError(f"{name} has dtype {tensor.dtype}; wanted a floating-point tensor")
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
        raise ValueError(f"reset has dtype {reset.dtype}; wanted torch.bool, true where an episode begins")
    if reset.device != device:
        raise ValueError(f"reset is on {reset.device} but the inputs are on {device}; move them to one device")


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
