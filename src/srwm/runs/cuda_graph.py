"""A training step captured once in a CUDA graph and replayed: hundreds of small kernels then cost one call."""

from collections.abc import Callable

import torch

from ._contract import Checkpointed

WARM_UPS = 3
"""Runs before the recording: libraries choose their algorithms, Triton compiles, buffers are made."""


def record(step: Callable[[], None], *, priority: int = 0) -> Callable[[], None]:
    """Record a step in a CUDA graph.

    The step runs a few times on the way, so whatever it changes must be put back afterwards, in place: the graph holds
    on to the memory that the tensors have now.

    Args:
        step: does all its work on the current CUDA stream, without waiting for it, on tensors that stay where they are.
        priority: of its kernels where others run at the same time; -1 goes before 0.

    Returns:
        A function that replays the step.
    """
    cuda_stream = torch.cuda.Stream(priority=priority)
    cuda_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(cuda_stream):
        for _ in range(WARM_UPS):
            step()
    torch.cuda.current_stream().wait_stream(cuda_stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=cuda_stream):
        step()
    return graph.replay


def capture(step: Callable[[], None], state: Checkpointed, device: torch.device) -> Callable[[], None]:
    """Capture a training step in a CUDA graph, and leave everything as it was before.

    Args:
        step: see `record`; all that it changes and that matters is in `state`.
        state: is put back, in place.
        device: where the step runs; on a CPU there is no graph.

    Returns:
        A function that replays the step; on a CPU the step itself.
    """
    if device.type != "cuda":
        return step
    before = {
        group: {name: tensor.clone() for name, tensor in tensors.items()} for group, tensors in state.tensors().items()
    }
    replay = record(step)
    state.load_tensors(before)
    return replay
