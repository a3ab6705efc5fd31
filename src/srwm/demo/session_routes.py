"""What the tabs beside the first one have in common: networks in sessions, behind addresses of their own."""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .bodies import no_session
from .bounds import Slots, Worker
from .kept import Keepable, Kept


@runtime_checkable
class Shared(Keepable, Protocol):
    """What is kept of one page, with slots for its requests."""

    slots: Slots


S = TypeVar("S", bound=Shared)


def about_route(name: str, about: dict[str, Any] | None) -> Route:
    """The address at which a tab is described; None for one that is not there."""
    return Route(f"/api/{name}", lambda request: JSONResponse({name: about}))


class SessionRoutes(Generic[S]):
    """The endpoints that all of them have.

    All sessions of a tab are computed in one thread of its own: however fast they run, the others are answered.

    Args:
        name: of the tab in addresses.
        about: what the page is told of it.
        sessions: of the pages.
        view: what the page is told of a session.
        most_waiting: requests that are computed or wait for it.
    """

    def __init__(
        self,
        name: str,
        about: dict[str, Any],
        sessions: Kept[S],
        view: Callable[[S], dict[str, Any]],
        most_waiting: int,
    ) -> None:
        self._name, self._about, self._sessions, self._view = name, about, sessions, view
        self._network = Worker(name, Slots(most_waiting, "requests"))

    @property
    def at(self) -> str:
        """Where the sessions are."""
        return f"/api/{self._name}/sessions"

    def routes(self) -> list[Route]:
        """The addresses."""
        return [about_route(self._name, self._about), Route(self.at + "/{session}", self.show)]

    async def show(self, request: Request) -> Response:
        """Show a session as it is."""
        return await self.compute(self.session(request), lambda: None)

    def session(self, request: Request) -> S:
        """Find the session that an address names."""
        session = self._sessions.find(request.path_params["session"])
        if session is None:
            raise no_session()
        return session

    async def begin(self, do: Callable[[S], None]) -> Response:
        """Begin a session, and show it with its name."""
        name = self._sessions.open()
        session = self._sessions.find(name)
        assert session is not None
        return await self.compute(session, lambda: do(session), {"session": name})

    async def compute(self, session: S, do: Callable[[], None], more: dict[str, str] | None = None) -> Response:
        """Do something with a session, one after the other, and show what came of it."""

        def respond() -> Response:
            do()
            return JSONResponse({**self._view(session), **(more or {})})

        with session.slots.take():
            return await self._network.run(respond)
