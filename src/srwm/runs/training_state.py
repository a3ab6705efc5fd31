"""What a training of one network with Adam keeps: weights, moments, running sums and random states, for checkpoints."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .devices import load_rng_tensors, rng_tensors
from .gradient_watch import GradientWatch
from .processes import Processes
from .tensor_file import restore_group

__all__ = ["load_training_tensors", "take_sums", "training_tensors"]


def training_tensors(model: nn.Module, optimizer: Mapping[str, Tensor], sums: Tensor) -> dict[str, dict[str, Tensor]]:
    """Give everything that a checkpoint must hold, by group; see `srwm.runs.loop.Checkpointed`."""
    return {
        "weights": dict(model.state_dict()),
        "optimizer": dict(optimizer),
        "metrics": {"sums": sums},
        "rng": rng_tensors(),
    }


def load_training_tensors(
    groups: Mapping[str, Mapping[str, Tensor]], model: nn.Module, optimizer: Mapping[str, Tensor], sums: Tensor
) -> None:
    """Go back to what `training_tensors` gave, in place: a CUDA graph holds on to the tensors' memory.

    Raises:
        InputError: if it is that of another model.
    """
    restore_group(model.state_dict(), groups, "weights")
    restore_group(optimizer, groups, "optimizer")
    restore_group({"sums": sums}, groups, "metrics")
    load_rng_tensors(groups.get("rng", {}))


def take_sums(sums: Tensor, watch: GradientWatch, processes: Processes) -> list[float]:
    """Give sums over all processes and set them back to zero; waits for the device.

    Raises:
        NonFiniteError: if a loss or gradient was not finite.
    """
    total = sums.clone()
    if processes.count > 1:
        torch.distributed.all_reduce(total)
    # After the exchange, in which all processes must take part.
    watch.check()
    sums.zero_()
    return [float(value) for value in total.tolist()]
