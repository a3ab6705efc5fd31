"""The saved state of one game: what the library gives, sealed so that nothing else is ever given back to it.

The library ends the process where a state is broken, and follows one of other levels without a word. So a state begins
with a mark and a checksum of ours, and the options inside of it are compared with those of the pool.
"""

import struct
import zlib

from srwm.errors import InputError

from .options import MAX_LEVEL, MODES, PoolOptions

_MARK = b"PGS1"
_SEAL = struct.Struct("<4sI")
_END_OF_STATE = 0xCAFECAFE
"""The last number of every state that the library writes."""
_OPTIONS = (
    "paint_vel_info",
    "use_generated_assets",
    "use_monochrome_assets",
    "restrict_themes",
    "use_backgrounds",
    "center_agent",
    "debug_mode",
    "distribution_mode",
    "use_sequential_levels",
    "use_easy_jump",
    "plain_assets",
    "physics_mode",
    "grid_step",
    "level_seed_low",
    "level_seed_high",
)
"""The numbers that stand behind the game's name in a state."""
_KEPT = ("paint_vel_info", "use_generated_assets", "use_monochrome_assets", "restrict_themes", "use_backgrounds")
"""Those that say how to draw and that no game changes by itself."""


def seal(raw: bytes) -> bytes:
    """Make a state that can be saved of one that the library gave."""
    return _SEAL.pack(_MARK, zlib.crc32(raw)) + raw


def unseal(state: bytes, env: int, options: PoolOptions) -> bytes:
    """Give the library's state back, if it is whole and an environment of the pool can go on with it.

    Args:
        state: what `seal` gave.
        env: the number of the environment that is to have it.
        options: the pool's.

    Raises:
        InputError: it is broken, or of another game, distribution or range of levels.
    """
    what = f"the state for environment {env}"
    if len(state) < _SEAL.size + 8 or state[:4] != _MARK:
        raise InputError(f"{what} is no saved state of a ProcGen game ({len(state)} bytes)")
    raw = state[_SEAL.size :]
    if _SEAL.unpack_from(state)[1] != zlib.crc32(raw):
        raise InputError(f"{what} is broken: its checksum is wrong")
    version, length = struct.unpack_from("<ii", raw)
    (end,) = struct.unpack_from("<I", raw, len(raw) - 4)
    if version != 0 or end != _END_OF_STATE or not 0 < length <= len(raw) - 8 - 4 * len(_OPTIONS):
        raise InputError(f"{what} was written by another version of ProcGen")
    game = raw[8 : 8 + length].decode("ascii", errors="replace")
    if game != options.game_of(env):
        raise InputError(f"{what} is of the game {game}, but the environment plays {options.game_of(env)}")
    found = dict(zip(_OPTIONS, struct.unpack_from(f"<{len(_OPTIONS)}i", raw, 8 + length), strict=True))
    for name, expected in _expected(options).items():
        if found[name] != expected:
            raise InputError(f"{what}: expected {name}={expected}, as its pool has, got {found[name]}")
    return raw


def time_limit(state: bytes) -> int:
    """Read the most steps that an episode of a game may have from one of its states."""
    raw = memoryview(state)[_SEAL.size :]
    offset = 4
    (length,) = struct.unpack_from("<i", raw, offset)
    # Behind the name: the options, the game's kind and number; then two generators of random numbers, a flag and a
    # text each; then the last step's reward, end and success, and the action.
    offset += 4 + length + 4 * (len(_OPTIONS) + 2)
    for _ in range(2):
        (length,) = struct.unpack_from("<i", raw, offset + 4)
        offset += 8 + length
    return int(struct.unpack_from("<i", raw, offset + 16)[0])


def _expected(options: PoolOptions) -> dict[str, int]:
    """The numbers of a state that belong to a pool's options."""
    levels = options.level_range
    return {
        "distribution_mode": MODES[options.distribution],
        "level_seed_low": levels.start,
        "level_seed_high": min(levels.stop, MAX_LEVEL),
        **{name: int(getattr(options, name)) for name in _KEPT},
    }
