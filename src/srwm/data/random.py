"""Random numbers as a pure function of where they are used: no generator, no state, the same on every device.

A number is a hash of (seed, rng_stream, step, position). Resuming a run or splitting a batch over processes needs
nothing but these integers.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor


def random_bits(key: Int[Tensor, "*rows"], shape: Sequence[int]) -> Int[Tensor, "*all"]:
    """Draw 32 random bits for each position of an array, for each key.

    Args:
        key: one number for each array, as `stream_key` makes it.
        shape: shape of each array.

    Returns:
        Integers in [0, 2**32) of shape [*rows, *shape], on the device of the keys.
    """
    size = int(torch.Size(shape).numel())
    positions = torch.arange(size, device=key.device, dtype=torch.int64)
    bits = _mix(key[..., None] + (positions + 1) * _GOLDEN)
    return (bits >> 32 & _LOW_32).reshape(*key.shape, *shape)


def random_integers(key: Int[Tensor, "*rows"], below: Int[Tensor, "*rows_and_shape"]) -> Int[Tensor, "*rows_and_shape"]:
    """Draw an integer in [0, below) at each position; `below` has the axes of the keys first, then those of each array.

    Its values are smaller than 2**31; the chances of two results differ by less than `below` in 2**32.
    """
    return random_bits(key, below.shape[key.dim() :]) * below >> 32


def stream_key(seed: int, rng_stream: int, steps: Int[Tensor, "*rows"]) -> Int[Tensor, "*rows"]:
    """Turn a seed, the number of a stream of random numbers and steps into keys; all of them matter."""
    # Plain integers: a tensor made here could not go to a GPU while a step is being recorded.
    return _mix(steps * _GOLDEN + _mix_integer(_mix_integer(seed) + rng_stream))


def _mix(z: Tensor) -> Tensor:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) in signed arithmetic that wraps around."""
    z = (z ^ _shift(z, 30)) * _MIX_1
    z = (z ^ _shift(z, 27)) * _MIX_2
    return z ^ _shift(z, 31)


def _mix_integer(z: int) -> int:
    """`_mix` of a Python integer."""
    z %= 1 << 64
    z = (z ^ z >> 30) * _MIX_1 % (1 << 64)
    z = (z ^ z >> 27) * _MIX_2 % (1 << 64)
    z ^= z >> 31
    return z if z < 1 << 63 else _signed(z)


def _shift(z: Tensor, places: int) -> Tensor:
    """Shift right and fill with zeros; `>>` alone copies the sign."""
    return z >> places & (1 << 64 - places) - 1


def _signed(value: int) -> int:
    return value - (1 << 64)


_LOW_32 = (1 << 32) - 1
_GOLDEN = _signed(0x9E3779B97F4A7C15)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)
