"""Noise in the state while a network is trained: what it keeps must find back to its place."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.nn import map_state

Network = Callable[..., tuple[Tensor, Any]]
"""From symbols [b, t] and a state to scores [b, t, classes] and the state to go on with, as `StateTracker`."""


def read_with_noise(
    network: Network, symbols: Int[Tensor, "b t"], *, noise: float, every: int
) -> Float[Tensor, "b t classes"]:
    """Read whole sequences with noise in the state between one piece and the next.

    A network that is right at every length has a few places for its state and comes back to them. Trained on short
    sequences alone it need not: a small error of a step grows with the next ones, beyond all that was trained. With
    noise, errors are there at the lengths of the training, and so is the gradient that takes them back.

    Args:
        network: what reads.
        symbols: the sequences.
        noise: standard deviation, as a share of the root mean square of each part of the state of a sequence.
        every: steps from one noise to the next.

    Returns:
        Scores of the answers at each position.
    """
    scores: list[Tensor] = []
    state = None
    for piece in symbols.split(every, dim=1):
        if state is not None:
            state = map_state(lambda part: _add_noise(part, noise), state)
        found, state = network(piece, state)
        scores.append(found)
    return torch.cat(scores, dim=1)


def _add_noise(part: Tensor, noise: float) -> Tensor:
    if not part.is_floating_point():  # a count of steps
        return part
    size = part.detach().square().mean(dim=tuple(range(1, part.dim())), keepdim=True).sqrt()
    return part + noise * size * torch.randn_like(part)
