"""What every layer asks of its arguments, as sentences."""

import math
from numbers import Real
from typing import Any, get_args

import torch
from torch import Tensor

from srwm.ops.checks import FLOATS, check_floating, check_shape, check_tensor, is_whole

MOST_LAYERS = 10_000
"""Layers in a row; more would only take their time to be made."""

MOST_NUMBERS = 2**36
"""Parameters of one layer; they take 256 GiB in float32."""


def check_word(name: str, value: object, choices: Any) -> None:
    """Refuse a word that is not among the choices of a `Literal`."""
    words = get_args(choices)
    # True equals 1, and 4.0 equals 4.
    if not any(is_whole(value) == is_whole(word) and value == word for word in words):
        raise ValueError(f"{name}={value!r}; expected one of {', '.join(map(repr, words))}")


def check_positive(*, most: int = 2**31 - 1, **sizes: int) -> None:
    """Refuse sizes that are not whole numbers from 1 to `most`."""
    for name, size in sizes.items():
        if not is_whole(size):
            raise ValueError(f"{name}={size!r}; expected a whole number")
        if size < 1:
            raise ValueError(f"{name}={size}; expected at least 1")
        if size > most:
            raise ValueError(f"{name}={size}; expected at most {most}")


def check_memory(*matrices: tuple[int, ...], **sizes: int) -> None:
    """Refuse sizes that make more parameters than a machine can hold, before it tries; `matrices` are their shapes."""
    # As Python's integers, which do not overflow.
    numbers = sum(math.prod(map(int, shape)) for shape in matrices)
    if numbers > MOST_NUMBERS:
        given = ", ".join(f"{name}={size}" for name, size in sizes.items())
        raise ValueError(f"{given} would make a layer of {numbers:,} parameters; expected at most {MOST_NUMBERS:,}")


def check_probability(**values: object) -> None:
    """Refuse numbers that are not from 0 to 1."""
    for name, value in values.items():
        if not isinstance(value, Real) or not 0 <= float(value) <= 1:
            raise ValueError(f"{name}={value!r}; expected a probability from 0 to 1")


def check_bool(**values: object) -> None:
    """Refuse what is neither True nor False."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name}={value!r}; expected True or False")


def check_dtype(dtype: torch.dtype | None) -> None:
    """Refuse a dtype that parameters cannot have; None is PyTorch's default."""
    if dtype is not None and dtype not in FLOATS:
        raise ValueError(f"dtype={dtype}; expected a floating-point dtype of 16, 32 or 64 bits")


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
    check_tensor(name, x)
    if x.dim() != len(letters.split()) or x.shape[-1] != size:
        wanted = ", ".join(letters.split())
        raise ValueError(f"{name} has shape {list(x.shape)}; expected [{wanted}] with {size} features in the last axis")
    check_floating(**{name: x})


def check_fits(x: Tensor, parameter: Tensor) -> None:
    """Refuse an input on another device than the parameters, or of another dtype that autocast does not make theirs."""
    if x.device != parameter.device:
        raise ValueError(f"x is on {x.device} but the layer is on {parameter.device}; move one with .to(device)")
    if x.dtype != parameter.dtype and not (
        torch.is_autocast_enabled(x.device.type) and torch.float64 not in (x.dtype, parameter.dtype)
    ):
        raise ValueError(f"x has dtype {x.dtype} but the layer has {parameter.dtype}; convert one with .to(dtype)")


def check_state_type(state: object, wanted: type) -> None:
    """Refuse the state of another kind of layer."""
    if state is not None and not isinstance(state, wanted):
        raise ValueError(
            f"state is a {type(state).__name__}; expected the {wanted.__name__} that this layer returned, or None"
        )


def check_state_part(name: str, part: Tensor, wanted: tuple[int, ...], letters: str, x: Tensor) -> None:
    """Refuse a tensor of a state that does not fit the layer, or lies on another device than its input `x`."""
    check_shape(name, part, wanted, letters)
    check_floating(**{"x": x, name: part})


def check_convolution(width: int) -> None:
    """Refuse what is no width of a convolution."""
    if not is_whole(width) or not (width == 0 or 2 <= width <= 2**31 - 1):
        raise ValueError(f"convolution={width!r}; expected 0 for none, or how many inputs it sees, at least 2")
