"""Random numbers for Strokes that are functions of a key: equal on every machine, in any order, for any amount.

Strokes computes with integers, the four basic operations, square roots and comparisons: IEEE 754 fixes their results to
the last bit, which it does not for sines and logarithms.
"""

import numpy as np
from jaxtyping import Float64, UInt64

Keys = UInt64[np.ndarray, "*keys"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SUM_MEAN = 2.0 * 65535.0
_SUM_DEVIATION = 37837.22746
"""Standard deviation of a sum of four even draws from 0, 1, ..., 65535."""


def first_key(seed: int) -> UInt64[np.ndarray, "1"]:
    """The key that all others of a seed come from."""
    return _mix(np.array([seed], dtype=np.uint64) + _GOLDEN)


def child_keys(keys: Keys, numbers: UInt64[np.ndarray, "*numbers"]) -> UInt64[np.ndarray, "..."]:
    """A new key for each key and number, broadcast; different numbers always give a key different children."""
    return _mix(keys ^ _mix(numbers + _GOLDEN))


def uniform(keys: Keys, count: int) -> Float64[np.ndarray, "*keys {count}"]:
    """`count` even draws from [0, 1) for each key."""
    return (_words(keys, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normal(keys: Keys, count: int) -> Float64[np.ndarray, "*keys {count}"]:
    """`count` draws for each key from a bell curve of mean 0 and deviation 1 that ends at 3.46 deviations.

    Each is the sum of four even draws: no hand jerks the pen by ten deviations, and no logarithm is needed.
    """
    words = _words(keys, count)
    total = np.zeros(words.shape)
    for shift in (0, 16, 32, 48):
        total += ((words >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.float64)
    return (total - _SUM_MEAN) / _SUM_DEVIATION


def _words(keys: Keys, count: int) -> UInt64[np.ndarray, "*keys {count}"]:
    """`count` random words for each key."""
    return _mix(keys[..., None] + _GOLDEN * np.arange(1, count + 1, dtype=np.uint64))


def _mix(x: UInt64[np.ndarray, "*x"]) -> UInt64[np.ndarray, "*x"]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): a bijection that scatters every bit."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))
