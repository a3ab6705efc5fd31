"""Where to compute, how exactly, and on what."""

import contextlib
import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

import srwm
from srwm.errors import InputError, RunError

__all__ = [
    "at_once",
    "choose_device",
    "full_memory_as_sentence",
    "hardware",
    "load_rng_tensors",
    "rng_tensors",
    "set_deterministic",
    "set_tf32",
]

_CPU_FLOATS_AT_ONCE = 1 << 20
"""Of the largest tensor, on a CPU. The memory of larger ones goes back to the system each time, and comes again page by
page, filled with zeros, which takes longer than the work on them."""

_NO_MEMORY = ("can't allocate memory", "not enough memory", "size calculation overflowed", "array is too big")
"""What torch says on a CPU, where it has no class of its own for it."""


def choose_device(name: str = "auto", *, local_rank: int = 0) -> torch.device:
    """Find a device by name.

    Args:
        name: "auto" for a GPU if there is one and else the CPU, "cpu", "cuda", or "cuda:N" for one of several GPUs.
        local_rank: the number of this process among those on this machine; "auto" and "cuda" give each its own GPU.

    Raises:
        InputError: if there is no such device here, saying what there is.
    """
    kind, colon, index = name.partition(":")
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if kind not in ("auto", "cuda") or (colon and not (kind == "cuda" and index.isdecimal())):
        raise InputError(f"device {name!r} is unknown; expected auto, cpu, cuda or cuda:N")
    if not torch.cuda.is_available():
        raise InputError(f"device {name!r} is not here: {_why_no_cuda()}; use --device cpu")
    count, number = torch.cuda.device_count(), int(index) if colon else local_rank
    if number >= count:
        raise InputError(f"device 'cuda:{number}' is not here: torch finds {count} GPU{'s' * (count > 1)}, from cuda:0")
    return torch.device("cuda", number)


def at_once(most: int, device: torch.device, *, floats: int) -> int:
    """How many things to do at once, fastest; each fills so many floats of the largest tensor on the way."""
    return min(most, max(_CPU_FLOATS_AT_ONCE // floats, 1)) if device.type == "cpu" else most


def set_deterministic(deterministic: bool) -> None:
    """Choose whether results on a GPU must be bitwise reproducible, at some cost in speed; the CPU always does.

    Operations that have no deterministic form then raise an error. Call it before anything runs on a GPU.
    """
    if deterministic:
        # cuBLAS reads it when it is first used; torch asks for one of two values.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic)
    # Our kernels write all that they return; filling it before would cost a pass over every tensor.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic


def set_tf32(allowed: bool) -> None:
    """Choose whether a GPU may round float32 factors to TF32 in matrix products and convolutions; much faster."""
    # Set by torch's newer `fp32_precision`, the older flags can no longer be read, and others still read them.
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed


def hardware(device: torch.device | str) -> dict[str, Any]:
    """Say on what a figure was measured: the device, the cores, the versions and the choices that change bits."""
    device = torch.device(device)
    on_gpu = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if on_gpu else _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "tf32": on_gpu and torch.backends.cuda.matmul.fp32_precision == "tf32",
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "versions": {
            "srwm": srwm.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": _version("triton"),
            "cuda": torch.version.cuda,
        },
    }


@contextlib.contextmanager
def full_memory_as_sentence(what: Callable[[], str]) -> Iterator[None]:
    """Turn torch's and Python's errors on a full memory into a `RunError` that says what to do.

    Args:
        what: says, when it has happened, what ran out of memory, and when.
    """
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise _no_memory(what()) from error
    except (RuntimeError, ValueError) as error:
        if isinstance(error, RunError | InputError) or not any(text in str(error) for text in _NO_MEMORY):
            raise
        raise _no_memory(what()) from error


def _no_memory(what: str) -> RunError:
    return RunError(f"{what}; take a smaller batch or model, or another device")


def rng_tensors() -> dict[str, Tensor]:
    """Give the states of torch's random generators as uint8 tensors, for the group "rng" of a checkpoint.

    That of the GPU is among them once one is in use.
    """
    tensors = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        tensors["cuda"] = torch.cuda.get_rng_state()
    return tensors


def load_rng_tensors(tensors: Mapping[str, Tensor]) -> None:
    """Put torch's random generators back into the states that `rng_tensors` gave.

    The state of a GPU is left out where there is none, as when a run goes on elsewhere.

    Raises:
        InputError: if a state does not fit.
    """
    try:
        torch.set_rng_state(tensors["cpu"])
        if "cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["cuda"])
    except (KeyError, RuntimeError, TypeError) as error:
        raise InputError(f"the checkpoint's random states do not fit this version of torch: {error}") from error


def _why_no_cuda() -> str:
    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    return "torch finds no GPU"


def _processor() -> str:
    """Name the processor; Linux keeps the name in a file."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
