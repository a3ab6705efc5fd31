"""A vector of ProcGen games that steps in place: the library writes straight into NumPy arrays."""

import ctypes
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int32, Int64, Integer, UInt8

from srwm.errors import InputError

from . import _libenv
from ._state import seal, time_limit, unseal
from .library import load_library
from .options import FORCE_RESET, NUM_ACTIONS, PoolOptions

FRAME_SHAPE = (64, 64, 3)
"""Height, width and colours of what an agent sees."""
LARGE_FRAME_SHAPE = (512, 512, 3)
"""Height, width and colours of what a person is shown."""

_MAX_STATE_BYTES = 2**20


class Observation(NamedTuple):
    """Observations of all environments; the arrays are the pool's own and are overwritten by its next step."""

    frames: UInt8[np.ndarray, "n 64 64 3"]
    """Where an episode ended, this is the first frame of the next one; the last one is never shown."""
    rewards: Float32[np.ndarray, "n"]
    """What the last action brought."""
    first: Bool[np.ndarray, "n"] | UInt8[np.ndarray, "n"]
    """Whether the frame is the first of an episode, so that the reward is the last of the one before."""


class Info(NamedTuple):
    """What an agent does not see; the arrays are the pool's own and are overwritten by its next step."""

    level_seed: Int32[np.ndarray, "n"]
    """The level that is being played."""
    prev_level_seed: Int32[np.ndarray, "n"]
    """The level that was played in the step before."""
    prev_level_complete: Bool[np.ndarray, "n"]
    """Whether the last step solved its level (an episode may also end by failure or time)."""


class Pool:
    """Games that are played side by side; a new episode begins where one ends, so nothing ever needs a reset.

    One thread at a time uses a pool (others wait for it); several pools run at once in as many threads, since the
    library needs no interpreter while it steps.

    Args:
        options: which games, on which levels.
        frames: where the library is to write frames to: uint8 `[n, 64, 64, 3]`, each frame in one piece. Several pools
            may write into parts of one array, which may be pinned memory of torch. The pool makes its own when None.
        rewards: likewise, float32 `[n]`.
        first: likewise, bool or uint8 `[n]`.
        large_frames: also draw each frame in 512 x 512, at every `observe`; takes most of the time.

    Raises:
        InputError: the library is not there, or an array cannot be written to as it is.

    Example:
        >>> with Pool(PoolOptions(games=("maze",), num_envs=8)) as pool:
        ...     frames, rewards, first = pool.observe()
        ...     pool.act(np.zeros(8, dtype=np.int32))
    """

    def __init__(
        self,
        options: PoolOptions,
        *,
        frames: np.ndarray | None = None,
        rewards: np.ndarray | None = None,
        first: np.ndarray | None = None,
        large_frames: bool = False,
    ) -> None:
        n = options.num_envs
        self.options = options
        self._frames = _checked("frames", frames, (n, *FRAME_SHAPE), (np.uint8,))
        self._rewards = _checked("rewards", rewards, (n,), (np.float32,))
        self._first = _checked("first", first, (n,), (np.bool_, np.uint8))
        self._actions = np.zeros(n, dtype=np.int32)
        self._info = Info(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.bool_))
        self._large_frames = np.zeros((n, *LARGE_FRAME_SHAPE), np.uint8) if large_frames else None
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._state_buffer: ctypes.Array[ctypes.c_char] | None = None
        self._library, files = load_library()
        resource_root = os.fsencode(files.pictures) + os.sep.encode()
        self._handle, kept = _libenv.make(
            self._library,
            n,
            {**options.for_library(), "resource_root": resource_root, "render_human": large_frames},
        )
        buffers = self._buffers()
        # What the library may still write to lives as long as its handle, whatever becomes of the pool.
        keep = (kept, buffers, self._frames, self._rewards, self._first, self._actions, self._info, self._large_frames)
        self._closer = weakref.finalize(self, _close, self._library, self._handle, self._lock, self._pid, keep)
        self._library.libenv_set_buffers(self._handle, buffers)
        self._library.libenv_observe(self._handle)

    def _buffers(self) -> _libenv.Buffers:
        """Hand all arrays over, in the order of the library's own lists."""
        info = {**self._info._asdict(), "rgb": self._large_frames}
        spaces: list[ctypes.Array[ctypes.c_void_p]] = []
        for space, arrays in (
            (_libenv.OBSERVATION, {"rgb": self._frames}),
            (_libenv.INFO, info),
            (_libenv.ACTION, {"action": self._actions}),
        ):
            shapes = _libenv.tensor_shapes(self._library, self._handle, space)
            addresses: list[int] = []
            for name, shape in shapes.items():
                array = arrays.get(name)
                assert array is not None, f"the library wants room for {name!r}"
                assert array.shape[1:] == shape, f"the library wants {name!r} of shape {shape}"
                addresses += [array.ctypes.data + env * array.strides[0] for env in range(len(array))]
            spaces.append(_libenv.pointers(addresses))
        observations, infos, actions = spaces
        return _libenv.Buffers(
            ob=ctypes.cast(observations, ctypes.POINTER(ctypes.c_void_p)),
            rew=self._rewards.ctypes.data,
            first=self._first.ctypes.data,
            info=ctypes.cast(infos, ctypes.POINTER(ctypes.c_void_p)),
            ac=ctypes.cast(actions, ctypes.POINTER(ctypes.c_void_p)),
        )

    @property
    def num_envs(self) -> int:
        """How many games are played."""
        return self.options.num_envs

    @property
    def closed(self) -> bool:
        """Whether the pool was closed."""
        return not self._closer.alive

    @property
    def info(self) -> Info:
        """The levels that are played, as of the last `observe`."""
        return self._info

    def observe(self) -> Observation:
        """Wait until all games have stepped, and give the observations.

        Raises:
            InputError: the pool is closed.
        """
        with self._using():
            self._library.libenv_observe(self._handle)
        return Observation(self._frames, self._rewards, self._first)

    def act(self, actions: Integer[np.ndarray, "n"]) -> None:
        """Step every game; with threads of the library, begin to.

        Args:
            actions: 0 to 14 for each environment (see `ACTIONS`), or `FORCE_RESET`.

        Raises:
            InputError: the pool is closed, or the actions are not such.
        """
        actions = np.asarray(actions)
        if actions.shape != self._actions.shape or actions.dtype.kind not in "iu":
            raise InputError(
                f"actions: expected whole numbers [{self.num_envs}], got {actions.dtype} {list(actions.shape)}"
            )
        least, most = actions.min(), actions.max()
        if least < FORCE_RESET or most >= NUM_ACTIONS:
            wrong = least if least < FORCE_RESET else most
            raise InputError(f"actions: expected 0 to {NUM_ACTIONS - 1}, or {FORCE_RESET} for a reset, got {wrong}")
        with self._using():
            if self.options.threads:
                # The library's threads may still read the last ones.
                self._library.libenv_observe(self._handle)
            self._actions[:] = actions
            self._library.libenv_act(self._handle)

    def get_state(self) -> list[bytes]:
        """Give the whole state of every game; a game that gets it back goes on exactly as this one does.

        Raises:
            InputError: the pool is closed.
        """
        with self._using():
            if self._state_buffer is None:
                self._state_buffer = ctypes.create_string_buffer(_MAX_STATE_BYTES)
            states = []
            for env in range(self.num_envs):
                size = self._library.get_state(self._handle, env, self._state_buffer, _MAX_STATE_BYTES)
                states.append(seal(ctypes.string_at(self._state_buffer, size)))
            return states

    def set_state(self, states: Sequence[bytes]) -> None:
        """Put every game into a state that this pool, or another with the same games and levels, once had.

        Raises:
            InputError: the pool is closed, or a state is broken or belongs to other games or levels; then no game has
                changed.
        """
        if len(states) != self.num_envs:
            raise InputError(f"expected {self.num_envs} states, one for each environment, got {len(states)}")
        raws = [unseal(state, env, self.options) for env, state in enumerate(states)]
        with self._using():
            for env, raw in enumerate(raws):
                self._library.set_state(self._handle, env, raw, len(raw))
            self._library.libenv_observe(self._handle)

    def time_limits(self) -> Int64[np.ndarray, "n"]:
        """Give the most steps that an episode of each environment may have; then it ends as if it were lost.

        Raises:
            InputError: the pool is closed.
        """
        return np.array([time_limit(state) for state in self.get_state()], np.int64)

    def close(self) -> None:
        """End the games; the arrays stay as they are. A second call does nothing."""
        self._closer()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Pool({self.options!r}{', closed' if self.closed else ''})"

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Keep others, and `close`, waiting while the library works."""
        if os.getpid() != self._pid:
            raise InputError("this pool of ProcGen games belongs to another process; open one in each process")
        with self._lock:
            if self.closed:
                raise InputError("this pool of ProcGen games is closed; open a new one")
            yield


def _close(library: ctypes.CDLL, handle: int, lock: threading.Lock, pid: int, keep: Any) -> None:
    """End the games once nobody steps them; `keep` holds their memory until then."""
    if os.getpid() == pid:  # The library's threads do not live on in a fork.
        with lock:
            library.libenv_close(handle)


def _checked(name: str, array: np.ndarray | None, shape: tuple[int, ...], dtypes: tuple[type, ...]) -> np.ndarray:
    """Give an array that the library can write to.

    Raises:
        InputError: the one that was handed in cannot be used.
    """
    if array is None:
        return np.zeros(shape, dtypes[0])
    if array.shape != shape or array.dtype not in dtypes:
        words = " or ".join(np.dtype(dtype).name for dtype in dtypes)
        raise InputError(f"{name}: expected {words} {list(shape)}, got {array.dtype} {list(array.shape)}")
    if not array.flags.writeable:
        raise InputError(f"{name} is read-only; the games must write to it")
    # Each frame lies in one piece; between frames there may be room.
    piece = array[0]
    apart = array.strides[0] >= piece.nbytes if array.ndim > 1 else array.flags.c_contiguous
    if (len(array) > 1 and not apart) or not piece.flags.c_contiguous:
        raise InputError(f"{name}: expected a contiguous array, got strides {array.strides}")
    return array
