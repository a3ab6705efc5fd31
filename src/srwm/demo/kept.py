"""A bounded number of sessions; those that were not used for long make place for new ones, longest first."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from .bounds import Busy

_KEPT_S = 600.0
"""A session that was used so recently makes no place for others."""
_KEPT_BLANK_S = 60.0
"""The same for one in which nothing is lost: whoever only loads the page again and again keeps nobody out for long."""


@runtime_checkable
class Keepable(Protocol):
    """What is kept of one page."""

    @property
    def is_blank(self) -> bool:
        """Whether it is as when it began, so that nothing is lost with it."""


S = TypeVar("S", bound=Keepable)


@dataclass
class _Kept(Generic[S]):
    session: S
    used: float
    """When it was used last."""


class Kept(Generic[S]):
    """Sessions by their names.

    Args:
        make: begins a session.
        limit: how many there are at most.
        clock: gives seconds; read when a session is begun or used.
    """

    def __init__(self, make: Callable[[], S], limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._make, self._clock = make, clock
        self.limit = limit
        # The one that was not used for longest comes first.
        self._sessions: OrderedDict[str, _Kept[S]] = OrderedDict()

    def open(self) -> str:
        """Begin a session, and return its name, which nobody can guess.

        Raises:
            Busy: if there are as many as fit, and all are in use.
        """
        now = self._clock()
        if len(self._sessions) >= self.limit:
            idle = (name for name, kept in self._sessions.items() if _is_idle(kept, now))
            oldest = next(idle, None)
            if oldest is None:
                raise Busy(
                    f"there are {self.limit} sessions, as many as fit, and all were used within the last "
                    f"{_KEPT_S / 60:.0f} minutes; go on in a page that is open already, or try again later"
                )
            del self._sessions[oldest]
        name = secrets.token_urlsafe(16)
        self._sessions[name] = _Kept(self._make(), now)
        return name

    def find(self, name: str) -> S | None:
        """Give a session, if it is still there."""
        kept = self._sessions.get(name)
        if kept is None:
            return None
        kept.used = self._clock()
        self._sessions.move_to_end(name)
        return kept.session


def _is_idle(kept: _Kept[S], now: float) -> bool:
    return now - kept.used > (_KEPT_BLANK_S if kept.session.is_blank else _KEPT_S)
