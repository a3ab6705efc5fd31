"""HTTP with an end to everything: to how many connections there are, and to how long each may take for what it does.

Uvicorn itself waits for ever for the end of a request, and for whoever does not read an answer.
"""

import asyncio
import itertools
from dataclasses import dataclass
from typing import Any, Literal

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

Phase = Literal["head", "body", "answer"]
"""What a connection is about: a request is awaited, its body is, or its answer is."""


@dataclass(frozen=True)
class Limits:
    """What the server bears."""

    connections: int = 128
    """At a time; one more takes the place of the one that has waited longest without a request."""
    head_s: float = 10.0
    """From the beginning of a connection, or from the answer before, until the head of a request is there."""
    body_s: float = 30.0
    """From its head until a request is there as a whole."""
    answer_s: float = 60.0
    """From the end of a request until its answer has been taken."""


class BoundedConfig(uvicorn.Config):
    """Uvicorn's configuration, with limits."""

    def __init__(self, app: ASGIApp, limits: Limits, **options: Any) -> None:
        super().__init__(app, http=BoundedProtocol, **options)
        self.limits = limits


class BoundedProtocol(H11Protocol):
    """One connection, which is cut off when it takes too long."""

    _numbers = itertools.count()

    def __init__(
        self,
        config: BoundedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = config.limits
        self.since = 0
        """Grows from one phase to the next, through all connections."""
        self._present: tuple[Phase, RequestResponseCycle | None] | None = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def phase(self) -> Phase:
        """What the connection is about now."""
        if self.conn.their_state is h11.SEND_BODY:
            return "body"
        return "answer" if self._is_answering else "head"

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, in the place of another one if there are too many."""
        others = [each for each in self.connections if isinstance(each, BoundedProtocol)]
        super().connection_made(transport)
        self._watch()
        if len(others) >= self.limits.connections:
            waiting = [each for each in others if each.phase == "head"]
            min(waiting, key=lambda each: each.since, default=self).cut()

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; whatever was being done for the same connection has no reader any more."""
        if self._is_answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            # An answer is on its way or there already; a second one would be taken for a part of it.
            self.transport.close()

    def cut(self) -> None:
        """End the connection at once, whatever the other side does."""
        # The place is free at once, and not only when the event loop comes round to closing.
        self.connections.discard(self)
        self.transport.abort()

    def _watch(self) -> None:
        """Set the time by which the present phase must end, if it has just begun; more bytes give no more time."""
        present = self.phase, self.cycle
        if present == self._present:
            return
        self._present, self.since = present, next(self._numbers)
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = {"head": self.limits.head_s, "body": self.limits.body_s, "answer": self.limits.answer_s}
        self._deadline = self.loop.call_later(seconds[present[0]], self.cut)
