"""A checker for the contract of sequence layers, to run on a layer of your own."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from ._promises import PROMISES, Trial, describe_call

_TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4}
"""Largest difference between two ways to the same result, relative to its size; half precision gets the last one."""
_HALF_TOLERANCE = 3e-2


class LayerContractError(ValueError):
    """A layer does not keep the contract of sequence layers.

    Attributes:
        broken: every broken promise, one sentence each.
    """

    def __init__(self, layer: str, broken: list[str]) -> None:
        self.broken = broken
        super().__init__("\n- ".join([f"{layer} breaks the contract of sequence layers:", *broken]))


def check_layer(
    layer: nn.Module,
    *,
    input_size: int | None = None,
    batch_size: int = 5,
    time: int = 7,
    tolerance: float | None = None,
    every_parameter_learns: bool = True,
    seed: int = 0,
) -> None:
    """Check that a layer keeps the contract `y, state = layer(x, state, reset=is_first)`, and say what is broken.

    A copy of the layer is run in evaluation mode on random inputs, on its own device and in its own dtype. The
    promises: it returns y [b, t, features] and a state that is a NamedTuple of tensors, batch first; None and zeros are
    the new state; a sequence cut anywhere, or read step by step, gives what the whole gives, values and gradients;
    a reset equals a fresh start, and no gradient crosses it; `state.detach()` and `state.reset(is_first)` do what they
    say; no argument is changed; nothing is kept on the module; rows of a batch do not mix; every parameter learns.

    Args:
        layer: the layer.
        input_size: features of its input; None to ask `layer.input_size`.
        batch_size: rows of the inputs, at least 2.
        time: steps of the inputs, at least 4.
        tolerance: largest difference between equal results, relative to their size; None to choose by dtype.
        every_parameter_learns: whether to ask that every parameter gets a gradient from the outputs of a sequence.
        seed: seed of the inputs.

    Raises:
        LayerContractError: if a promise is broken; the message and `error.broken` list all of them.
        ValueError: if the layer cannot be checked with these arguments.

    Example:
        >>> from srwm.nn import SRWM
        >>> check_layer(SRWM(hidden_size=8, num_heads=2))
    """
    if batch_size < 2 or time < 4:
        raise ValueError(f"batch_size={batch_size}, time={time}; expected at least 2 rows and 4 steps")
    if input_size is None:
        input_size = getattr(layer, "input_size", None)
        if not isinstance(input_size, int):
            raise ValueError(f"{type(layer).__name__} has no input_size; pass input_size=, the features of its input")
    name = type(layer).__name__
    layer = _for_checking(layer)
    example = next((p for p in layer.parameters() if p.is_floating_point()), torch.empty(0))
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(2, batch_size, time, input_size, generator=generator, dtype=torch.float64)
    x, other_x = inputs.to(device=example.device, dtype=example.dtype)
    tolerance = _TOLERANCES.get(example.dtype, _HALF_TOLERANCE) if tolerance is None else tolerance

    trial, broken = _first_call(layer, x, other_x, tolerance)
    for promise in PROMISES if trial else ():
        if promise.__name__ == "every_parameter_learns" and not every_parameter_learns:
            continue
        try:
            broken += promise(trial)
        except Exception as error:  # whatever a broken layer raises belongs in the report
            claim = (promise.__doc__ or "").rstrip(".")
            broken.append(f'Trying "{claim}" raised {type(error).__name__}: {error}')
    if broken:
        raise LayerContractError(name, broken)


def _for_checking(layer: nn.Module) -> nn.Module:
    """Copy a layer without its randomness."""
    layer = copy.deepcopy(layer).eval()
    for module in layer.modules():
        # cuDNN differentiates its recurrent networks in training mode only.
        if isinstance(module, nn.RNNBase):
            module.train()
            module.dropout = 0.0
    return layer


def _first_call(layer: nn.Module, x: Tensor, other_x: Tensor, tolerance: float) -> tuple[Any, list[str]]:
    """Call the layer once; without a pair (y, state) to look at, nothing further can be tried."""
    try:
        with torch.no_grad():
            result = layer(x)
    except Exception as error:  # as above
        return None, [f"layer(x) with x {list(x.shape)} raised {type(error).__name__}: {error}"]
    fatal, broken = describe_call(result, x)
    if fatal:
        return None, fatal
    return Trial(layer, x, other_x, tolerance, *result), broken
