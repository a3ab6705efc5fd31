"""Takes times and peak memory of a call, on a CPU or a GPU."""

import statistics
import time
from collections.abc import Callable

import torch

ROUNDS = 5
"""Rounds in which every call is timed; the median over them is reported."""


def interleaved_ms(calls: dict[str, Callable[[], object]], device: torch.device, budget_s: float) -> dict[str, float]:
    """The median time of each call in milliseconds, all of them measured interleaved.

    That matters on machines that are shared with others: what slows one call slows all, and their ratios stay true. In
    its turn a call is repeated without a pause, as in a training loop, and on a GPU the GPU's own clock is read.

    Args:
        calls: what to time, by name.
        device: where the calls run.
        budget_s: about how long each call is repeated over all rounds.

    Returns:
        The median time of each call, by name.
    """
    repeats = {}
    for name, call in calls.items():
        _repeat_ms(call, device, 2)  # compiles, and warms up
        repeats[name] = max(1, min(1000, int(budget_s * 1e3 / ROUNDS / _repeat_ms(call, device, 1))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(_repeat_ms(call, device, repeats[name]))
    return {name: statistics.median(measured) for name, measured in times.items()}


def _repeat_ms(call: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The mean time of one of several calls in a row, in milliseconds."""
    if device.type == "cuda":
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize(device)
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        torch.cuda.synchronize(device)
        return float(start.elapsed_time(end)) / repeats
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) * 1e3 / repeats


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
