"""Takes times and peak memory of a call, on a CPU or a GPU."""

import statistics
import time
from collections.abc import Callable

import torch


def interleaved_ms(calls: dict[str, Callable[[], object]], device: torch.device, budget_s: float) -> dict[str, float]:
    """The median time of each call in milliseconds, all of them measured in turns.

    Turns matter on machines that are shared with others: what slows one call slows all, and their ratios stay true.

    Args:
        calls: what to time, by name.
        device: where the calls run; on a GPU its own clock is read.
        budget_s: about how long each call may be repeated, after one call to warm up.

    Returns:
        The median time of each call, by name.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        once_ms(call, device)
    spent = {name: 0.0 for name in calls}
    while any(spent[name] < budget_s and len(times[name]) < 1000 for name in calls):
        for name, call in calls.items():
            if spent[name] < budget_s or len(times[name]) < 5:
                times[name].append(once_ms(call, device))
                spent[name] += times[name][-1] / 1e3
    return {name: statistics.median(measured) for name, measured in times.items()}


def once_ms(call: Callable[[], object], device: torch.device) -> float:
    """The time of one call in milliseconds."""
    if device.type == "cuda":
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize(device)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize(device)
        return start.elapsed_time(end)
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def peak_bytes(call: Callable[[], object], device: torch.device) -> int | None:
    """The most memory PyTorch held during a call beyond what it held before; None on a CPU, where nobody counts."""
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    call()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before
