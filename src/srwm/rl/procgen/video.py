"""Games to look at: beside what the agent sees, each frame in 512 x 512."""

from typing import Any

import numpy as np
from jaxtyping import UInt8

from .options import PoolOptions
from .pool import Pool

FRAMES_PER_SECOND = 15
"""The speed that ProcGen's makers show its games at."""


class VideoPool(Pool):
    """A pool that also draws large frames; about 500 a second, so it is for showing, not for learning.

    Use it in the main thread on macOS: the library draws in a megabyte of stack, which other threads do not have.

    Args:
        options: which games, on which levels.
        buffers: `frames`, `rewards` and `first` as in `Pool`.
    """

    def __init__(self, options: PoolOptions, **buffers: Any) -> None:
        super().__init__(options, **buffers, large_frames=True)

    @property
    def large_frames(self) -> UInt8[np.ndarray, "n 512 512 3"]:
        """The frames of the last `observe`, large; the array is overwritten by the next."""
        assert self._large_frames is not None
        return self._large_frames
