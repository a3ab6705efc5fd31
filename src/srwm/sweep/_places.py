"""Where the jobs of a sweep run on this machine: GPUs and cores are handed out through the environment."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Room for one job at a time."""

    name: str
    environment: tuple[tuple[str, str], ...]
    """What the job's process gets beside what the sweep has."""


def hand_out(jobs: int | None, gpus: Sequence[str], cores: int, environment: Mapping[str, str]) -> list[Place]:
    """Share GPUs and cores out among jobs.

    Args:
        jobs: how many jobs run at a time; None for one a GPU, or one alone where there is no GPU.
        gpus: names of the GPUs as CUDA_VISIBLE_DEVICES takes them.
        cores: processors of this machine that may be used.
        environment: that of the sweep; a number of threads that stands there is kept.

    Returns:
        One place a job. With more jobs than GPUs, the jobs share the GPUs evenly.
    """
    count = jobs or max(1, len(gpus))
    threads = environment.get("OMP_NUM_THREADS") or str(max(1, cores // count))
    places = []
    for index in range(count):
        name, settings = f"cpu {index}", [("OMP_NUM_THREADS", threads)]
        if gpus:
            gpu = gpus[index % len(gpus)]
            share = f".{index // len(gpus)}" if count > len(gpus) else ""
            name = f"gpu {gpu}{share}"
            settings.append(("CUDA_VISIBLE_DEVICES", gpu))
        places.append(Place(name, tuple(settings)))
    return places


def visible_gpus(count: int, environment: Mapping[str, str]) -> list[str]:
    """Name the GPUs that this process may use.

    Args:
        count: how many torch finds.
        environment: where CUDA_VISIBLE_DEVICES may name fewer than the machine has, or name them otherwise.
    """
    named = [name.strip() for name in environment.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return named[:count] if any(named) else [str(index) for index in range(count)]


def places_here(jobs: int | None) -> list[Place]:
    """Share this machine out; see `hand_out`."""
    import torch

    return hand_out(jobs, visible_gpus(torch.cuda.device_count(), os.environ), _cores(), os.environ)


def _cores() -> int:
    # macOS has no affinity of processes to processors.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
