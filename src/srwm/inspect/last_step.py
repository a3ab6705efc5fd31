"""The last step of each matrix that modifies itself: for whoever watches a model live and keeps no record."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from srwm.nn import FastCall, FastMatrix, FastStep

from ._sites import find_matrices, listen


@contextmanager
def last_steps(model: nn.Module) -> Iterator[dict[str, FastStep]]:
    """Fill a dictionary with what the last step in this block did to each self-referential matrix, by its name.

    Outputs stay the same; what happens in between is computed again, in plain operators that `torch.export` can trace.

    Example:
        >>> from srwm.nn import SRWM
        >>> layer = SRWM(hidden_size=8, num_heads=2)
        >>> with last_steps(layer) as steps:
        ...     y, state = layer(torch.randn(3, 5, 8))
        >>> steps["layer"].beta.shape
        torch.Size([3, 2, 4])
    """
    steps: dict[str, FastStep] = {}

    def take(matrix: FastMatrix, call: FastCall) -> None:
        *_, steps[matrix.name] = matrix.steps(call)

    sites = [each for each in find_matrices(model) if each.kind == "self_referential"]
    handles = [listen(each, functools.partial(take, each)) for each in sites]
    try:
        yield steps
    finally:
        for handle in handles:
            handle.remove()
