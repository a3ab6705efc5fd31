"""Which implementation of an operator runs: the names, what each needs, and the choice."""

import importlib.util
import os
import warnings
from typing import Literal

import torch

Backend = Literal["auto", "reference", "cpu", "triton"]

MAX_TRITON_HEAD_DIM = 128
"""The largest head the Triton kernels take: beyond it, one head's matrix no longer fits a multiprocessor."""


_INSTALLED = {package: importlib.util.find_spec(package) is not None for package in ("numba", "triton")}


def available_backends(device: torch.device | str, head_dim: int = 1) -> tuple[Backend, ...]:
    """Name the backends that can run on `device`, fastest first.

    Args:
        device: where the tensors live.
        head_dim: size of a head; the Triton kernels take at most 128.

    Returns:
        A tuple of words that `backend=` takes; "reference" is always the last.

    Example:
        >>> available_backends("cpu")[-1]
        'reference'
    """
    kind = torch.device(device).type
    usable: list[Backend] = []
    if kind == "cpu" and _INSTALLED["numba"]:
        usable.append("cpu")
    # Triton's interpreter runs the kernels on CPU tensors: slow, and only for tests.
    on_triton = kind == "cuda" or (kind == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")
    if on_triton and _INSTALLED["triton"] and head_dim <= MAX_TRITON_HEAD_DIM:
        usable.append("triton")
    return (*usable, "reference")


def choose_backend(backend: Backend, device: torch.device, head_dim: int) -> Backend:
    """Resolve "auto" to the fastest usable backend, and refuse one that cannot run here."""
    # A single step is so short that naming all the others would be felt.
    if backend in ("auto", "cpu") and device.type == "cpu" and _INSTALLED["numba"]:
        return "cpu"
    usable = available_backends(device, head_dim)
    if backend != "auto":
        if backend not in usable:
            raise ValueError(
                f"backend={backend!r} cannot run on {device} with head size {head_dim}; "
                f"usable here: {('auto', *usable)}"
            )
        return backend
    # A warning cannot be part of a compiled graph, and nothing is slow on tensors without numbers.
    if usable[0] == "reference" and device.type != "meta" and not torch.compiler.is_compiling():
        _warn_slow(device.type, head_dim)
    return usable[0]


_warned: set[tuple[str, int]] = set()


def _warn_slow(device_type: str, head_dim: int) -> None:
    if (device_type, head_dim) in _warned:
        return
    _warned.add((device_type, head_dim))
    missing = {"cpu": "install numba", "cuda": f"install triton and keep heads at {MAX_TRITON_HEAD_DIM} or below"}
    remedy = missing.get(device_type, "there is no kernel for this device")
    warnings.warn(
        f"srwm runs the slow reference on {device_type} with head size {head_dim}: {remedy}, "
        'or pass backend="reference" to say that this is meant.',
        stacklevel=4,
    )
