"""What every layer asks of its arguments, as sentences."""

from typing import Any, get_args

import torch
from torch import Tensor

from srwm.ops._checks import check_floating


def check_word(name: str, value: object, choices: Any) -> None:
    """Refuse a word that is not among the choices of a `Literal`."""
    words = get_args(choices)
    if value not in words:
        raise ValueError(f"{name}={value!r}; wanted one of {', '.join(map(repr, words))}")


def check_positive(**sizes: int) -> None:
    """Refuse sizes below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}={size}; wanted at least 1")


def check_heads(num_heads: int, **sizes: int) -> None:
    """Refuse sizes that cannot be cut into equal heads."""
    check_positive(num_heads=num_heads, **sizes)
    for name, size in sizes.items():
        if size % num_heads:
            raise ValueError(
                f"{name}={size} is not a multiple of num_heads={num_heads}; choose a number of heads that divides it"
            )


def check_input(name: str, x: Tensor, letters: str, size: int) -> None:
    """Refuse an input whose number of axes or whose last axis is not the layer's; `letters` names the axes."""
    if x.dim() != len(letters.split()) or x.shape[-1] != size:
        wanted = ", ".join(letters.split())
        raise ValueError(f"{name} has shape {list(x.shape)}; wanted [{wanted}] with {size} features in the last axis")
    check_floating(**{name: x})


def check_fits(x: Tensor, parameter: Tensor) -> None:
    """Refuse an input on another device than the parameters or, outside autocast, of another dtype."""
    if x.device != parameter.device:
        raise ValueError(f"x is on {x.device} but the layer is on {parameter.device}; move one with .to(device)")
    if x.dtype != parameter.dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(f"x has dtype {x.dtype} but the layer has {parameter.dtype}; convert one with .to(dtype)")


def check_state_type(state: object, wanted: type) -> None:
    """Refuse the state of another kind of layer."""
    if state is not None and not isinstance(state, wanted):
        raise ValueError(
            f"state is a {type(state).__name__}; wanted the {wanted.__name__} that this layer returned, or None"
        )
