"""Several processes, as `torchrun` starts them: each computes its share, gradients are averaged, the first writes."""

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from srwm.errors import InputError, RunError

__all__ = [
    "Processes",
    "all_true",
    "any_true",
    "average_gradients",
    "average_numbers",
    "broadcast_number",
    "gather_tensors",
    "run_on_main",
    "start_processes",
    "stop_processes",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process among its peers; the default is one process alone."""

    rank: int = 0
    """Its number among all, from 0."""
    count: int = 1
    """How many there are, on all machines together."""
    local_rank: int = 0
    """Its number among those on this machine."""
    device: str = "cpu"
    """Where it computes, and where tensors lie that go to the others."""

    @property
    def is_main(self) -> bool:
        """Whether this one writes files and shows progress."""
        return self.rank == 0


def start_processes(device: str = "cpu") -> Processes:
    """Join the processes that `torchrun` started, or stand alone where it did not.

    Args:
        device: "cpu", "cuda" for the GPU of this process's local number, or a GPU by number when it is alone.

    Raises:
        InputError: if the environment variables of `torchrun` are incomplete or make no sense, or there are more
            processes than GPUs.
        RunError: if the others cannot be reached.
    """
    if "RANK" not in os.environ and "WORLD_SIZE" not in os.environ:
        return Processes(device=device)
    rank, count, local_rank = (_environment_number(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    if not 0 <= rank < count:
        raise InputError(f"RANK={rank} and WORLD_SIZE={count}; expected a rank from 0 to {count - 1}")
    if count == 1:
        return Processes(device=device)
    on_gpu = device.startswith("cuda")
    if on_gpu:
        if local_rank >= torch.cuda.device_count():
            found = torch.cuda.device_count()
            raise InputError(
                f"process {local_rank} of this machine has no GPU: there are {found}; start {found} processes"
            )
        device = f"cuda:{local_rank}"
        torch.cuda.set_device(local_rank)
    # Imported later, by an optimizer say, this module would keep the group as a default argument. Its threads would
    # then outlive `stop_processes`, and one that frees a tensor while Python ends aborts the process.
    importlib.import_module("torch.distributed.nn.functional")
    try:
        dist.init_process_group("nccl" if on_gpu else "gloo", rank=rank, world_size=count)
    except (ValueError, RuntimeError) as error:
        raise RunError(f"process {rank} of {count} cannot reach the others: {error}; start them by torchrun") from error
    return Processes(rank, count, local_rank, device)


def stop_processes() -> None:
    """Leave the others; does nothing for a process that stands alone."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def average_gradients(parameters: Iterable[nn.Parameter], processes: Processes) -> None:
    """Replace each gradient by its mean over the processes, in one exchange for each dtype.

    The order of the sums is fixed, so averages are bitwise reproducible. Every process must have gradients for the same
    parameters; those without one are left out.
    """
    if processes.count == 1:
        return
    by_dtype: dict[torch.dtype, list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            by_dtype.setdefault(parameter.grad.dtype, []).append(parameter.grad)
    for gradients in by_dtype.values():
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        flat.div_(processes.count)
        parts = flat.split([gradient.numel() for gradient in gradients])
        torch._foreach_copy_(gradients, [part.view_as(g) for part, g in zip(parts, gradients, strict=True)])


def average_numbers(numbers: dict[str, float], processes: Processes) -> dict[str, float]:
    """Replace each number by its mean over the processes; all give the same names in the same order."""
    if processes.count == 1 or not numbers:
        return numbers
    values = torch.tensor(list(numbers.values()), dtype=torch.float64, device=processes.device)
    dist.all_reduce(values)
    return dict(zip(numbers, (values / processes.count).tolist(), strict=True))


def any_true(flag: bool, processes: Processes) -> bool:
    """Whether the flag is set in at least one process; all must ask."""
    if processes.count == 1:
        return flag
    value = torch.tensor(int(flag), device=processes.device)
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return bool(value.item())


def all_true(flag: bool, processes: Processes) -> bool:
    """Whether the flag is set in every process; all must ask."""
    return not any_true(not flag, processes)


def broadcast_number(number: float, processes: Processes) -> float:
    """Give every process the number of the main one; all must ask."""
    if processes.count == 1:
        return number
    value = torch.tensor(number, dtype=torch.float64, device=processes.device)
    dist.broadcast(value, src=0)
    return float(value.item())


def gather_tensors(tensors: Mapping[str, Tensor], processes: Processes) -> list[dict[str, Tensor]]:
    """Give every process the tensors of all, by rank, on the CPU.

    All give the same names; under a name, only the first dimension may differ.
    """
    if processes.count == 1:
        return [{name: tensor.cpu() for name, tensor in tensors.items()}]
    gathered: list[dict[str, Tensor]] = [{} for _ in range(processes.count)]
    for name, tensor in tensors.items():
        own = torch.atleast_1d(tensor.to(processes.device))
        lengths = [int(each) for each in _gather(torch.tensor(len(own), device=processes.device), processes)]
        padded = own.new_zeros(max(lengths), *own.shape[1:])
        padded[: len(own)] = own
        for rank, part in enumerate(_gather(padded, processes)):
            rows = part[: lengths[rank]].cpu()
            gathered[rank][name] = rows if tensor.dim() else rows[0]
    return gathered


def _gather(own: Tensor, processes: Processes) -> list[Tensor]:
    parts = [torch.empty_like(own) for _ in range(processes.count)]
    dist.all_gather(parts, own)
    return parts


def run_on_main(processes: Processes, function: Callable[[], T]) -> T | None:
    """Call a function in the main process while the others wait; all must ask.

    Returns:
        What it returned, in the main process; None in the others.

    Raises:
        RunError: in the others, if it failed in the main process, which raises the error itself.
    """
    result, error = None, None
    if processes.is_main:
        try:
            result = function()
        except BaseException as raised:
            error = raised
    if any_true(error is not None, processes) and error is None:
        raise RunError("process 0 failed and says why")
    if error is not None:
        raise error
    return result


def _environment_number(name: str) -> int:
    text = os.environ.get(name, "")
    if not text.isdecimal():
        came = f"{name}={text!r}" if text else f"{name} is not set"
        raise InputError(f"{came}, but others of torchrun's variables are; start with torchrun, or unset them all")
    return int(text)
