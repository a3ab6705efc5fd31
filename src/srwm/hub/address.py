"""Addresses of models on the Hub: `hf:owner/name@REVISION#sha256=DIGEST`."""

import re
from dataclasses import dataclass
from pathlib import Path

from srwm.errors import InputError

__all__ = ["PREFIX", "HubAddress", "is_hub_address", "parse_address"]

PREFIX = "hf:"
"""What every address begins with."""

MAIN = "main"
"""The branch that is meant where no revision is given."""

_PART = r"[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?"
_ADDRESS = re.compile(
    rf"(?P<repository>{_PART}/{_PART})(?:@(?P<revision>{_PART}(?:/{_PART})*))?(?:#sha256=(?P<sha256>[0-9a-f]{{64}}))?",
    re.ASCII,
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_LETTERS = 96
"""Letters of the longest name of a repository that the Hub takes."""


@dataclass(frozen=True)
class HubAddress:
    """Where a model lies on the Hub."""

    repository: str
    """Its `owner/name`."""
    revision: str = MAIN
    """A branch, a tag, or the hash of a commit."""
    sha256: str | None = None
    """The SHA-256 that its files must have together; see `srwm.hub.digests.joint_digest`."""

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is the hash of a commit, which nobody can move."""
        return _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        revision = "" if self.revision == MAIN else f"@{self.revision}"
        return f"{PREFIX}{self.repository}{revision}{'' if self.sha256 is None else f'#sha256={self.sha256}'}"


def is_hub_address(name: str | Path) -> bool:
    """Whether the name of a model means one on the Hub."""
    return _text(name).startswith(PREFIX)


def parse_address(name: str | Path) -> HubAddress:
    """Read an address.

    Args:
        name: `hf:owner/name`, with `@REVISION` and `#sha256=DIGEST` behind it where they are given.

    Raises:
        InputError: if it is none.
    """
    text = _text(name)
    found = _ADDRESS.fullmatch(text.removeprefix(PREFIX))
    is_sound = found is not None and ".." not in text and "--" not in found["repository"]
    if not text.startswith(PREFIX) or found is None or not is_sound or len(found["repository"]) > _MOST_LETTERS:
        raise InputError(
            f"{text[:200]!r} is no address of a model; expected hf:owner/name, hf:owner/name@REVISION or "
            "hf:owner/name@REVISION#sha256=DIGEST, with a digest of 64 small hexadecimal digits"
        )
    return HubAddress(found["repository"], found["revision"] or MAIN, found["sha256"])


def _text(name: str | Path) -> str:
    # On Windows the text of a path has other strokes.
    return name.as_posix() if isinstance(name, Path) else name
