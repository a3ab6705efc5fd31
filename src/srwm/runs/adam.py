"""Adam whose state is there from the start, under names, for checkpoints and recorded steps."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def adam_state(optimizer: torch.optim.Adam, named_parameters: Iterable[tuple[str, nn.Parameter]]) -> dict[str, Tensor]:
    """Make the state that a fused Adam would make at its first step, and give it names.

    Returns:
        The tensors of the state itself, named `NAME/exp_avg`, `NAME/exp_avg_sq` and `NAME/step`; copying into them
        restores a checkpoint.
    """
    tensors: dict[str, Tensor] = {}
    for name, parameter in named_parameters:
        state = optimizer.state[parameter]
        state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
        state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        tensors.update({f"{name}/{part}": tensor for part, tensor in state.items()})
    return tensors
