"""The addresses of the third tab: a sequence for each page, read by networks side by side."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from srwm.errors import InputError

from .bodies import read_json
from .requests import whole_number
from .session_routes import SessionRoutes
from .tracking_learner import TrackingLearner
from .tracking_session import MAX_SYMBOLS, TrackingSession, TrackingSessions
from .tracking_views import tracking_model_view, tracking_view


class TrackingRoutes(SessionRoutes[TrackingSession]):
    """The endpoints.

    Args:
        learner: the networks.
        most_waiting: requests that are computed or wait for it.
        clock: gives seconds, by which sessions that are out of use are known.
    """

    def __init__(self, learner: TrackingLearner, most_waiting: int, clock: Callable[[], float]) -> None:
        about, sessions = tracking_model_view(learner), TrackingSessions(learner, clock)
        super().__init__("tracking", about, sessions, tracking_view, most_waiting)
        self._most = len(learner.language.symbols) - 1

    def routes(self) -> list[Route]:
        """The addresses."""
        one = self.at + "/{session}"
        return [
            *super().routes(),
            Route(self.at, self.open, methods=["POST"]),
            Route(one + "/read", self.read, methods=["POST"]),
            Route(one + "/replace", self.replace, methods=["POST"]),
            Route(one + "/reset", self.reset, methods=["POST"]),
        ]

    async def open(self, request: Request) -> Response:
        """Begin a session."""
        await read_json(request)
        return await self.begin(lambda session: None)

    async def read(self, request: Request) -> Response:
        """Read more symbols."""
        session = self.session(request)
        body = await read_json(request, "symbols")
        symbols = self._symbols(body["symbols"])
        return await self.compute(session, lambda: session.read(symbols))

    async def replace(self, request: Request) -> Response:
        """Put another symbol at a place that is shown."""
        session = self.session(request)
        body = await read_json(request, "place", "symbol")
        place = whole_number("place", body["place"], 1, 2**53)
        symbol = whole_number("symbol", body["symbol"], 0, self._most)
        return await self.compute(session, lambda: session.replace(place, symbol))

    async def reset(self, request: Request) -> Response:
        """Reset."""
        session = self.session(request)
        await read_json(request)
        return await self.compute(session, session.reset)

    def _symbols(self, value: Any) -> list[int]:
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_SYMBOLS:
            raise InputError(f"the symbols are not a list of 1 to {MAX_SYMBOLS} of them")
        return [whole_number("a symbol", each, 0, self._most) for each in value]
