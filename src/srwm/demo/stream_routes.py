"""The addresses of the second tab: a stream without end for each page, in sessions of their own."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from srwm.sequential import StreamModel

from .bodies import no_session, read_json
from .bounds import Slots, Worker
from .requests import choice, whole_number
from .stream_learner import StreamLearner
from .stream_session import MAX_STEPS, StreamSession, StreamSessions
from .stream_views import stream_model_view, stream_view
from .tasks import MAX_SEED, TASK_LENGTHS, draw_task

ABOUT = "/api/stream"
"""Says which model of streams there is, if there is one."""


def no_stream_routes() -> list[Route]:
    """The addresses where there is no model of streams."""
    return [Route(ABOUT, lambda request: JSONResponse({"stream": None}))]


class StreamRoutes:
    """The endpoints.

    All streams are computed in one thread of their own: however fast they run, who teaches a network is answered.

    Args:
        model: what `srwm.sequential.load_stream_model` gave.
        name: what the page calls it.
        most_waiting: requests that are computed or wait for it.
        clock: gives seconds, by which sessions that are out of use are known.

    Raises:
        InputError: if no characters can be drawn for the model.
    """

    def __init__(self, model: StreamModel, name: str, most_waiting: int, clock: Callable[[], float]) -> None:
        draw_task(model, 0, 0)
        learner = StreamLearner(model)
        self._about = stream_model_view(name, learner)
        self._sessions = StreamSessions(learner, clock)
        self._network = Worker("streams", Slots(most_waiting, "requests"))

    def routes(self) -> list[Route]:
        """The addresses."""
        at = ABOUT + "/sessions/{session}"
        return [
            Route(ABOUT, self.about),
            Route(ABOUT + "/sessions", self.open, methods=["POST"]),
            Route(at, self.show),
            Route(at + "/steps", self.live, methods=["POST"]),
            Route(at + "/change", self.change, methods=["POST"]),
            Route(at + "/task_length", self.set_task_length, methods=["POST"]),
            Route(at + "/reset", self.reset, methods=["POST"]),
        ]

    async def about(self, request: Request) -> Response:
        """Say which model there is."""
        return JSONResponse({"stream": self._about})

    async def open(self, request: Request) -> Response:
        """Begin a session, with a stream of some seed."""
        body = await read_json(request, "seed")
        seed = whole_number("seed", body["seed"], 0, MAX_SEED)
        name = self._sessions.open()
        session = self._sessions.find(name)
        assert session is not None
        return await self._compute(session, lambda: session.reset(seed), name)

    async def show(self, request: Request) -> Response:
        """Show a stream as it is."""
        return await self._compute(self._session(request), lambda: None)

    async def live(self, request: Request) -> Response:
        """Go on for some images."""
        session = self._session(request)
        body = await read_json(request, "count")
        count = whole_number("count", body["count"], 1, MAX_STEPS)
        return await self._compute(session, lambda: session.live(count))

    async def change(self, request: Request) -> Response:
        """Let other classes come now."""
        session = self._session(request)
        await read_json(request)
        return await self._compute(session, session.change)

    async def set_task_length(self, request: Request) -> Response:
        """Say how long classes stay."""
        session = self._session(request)
        body = await read_json(request, "images")
        images = choice("images", body["images"], TASK_LENGTHS)
        return await self._compute(session, lambda: session.set_task_length(images))

    async def reset(self, request: Request) -> Response:
        """Reset, with a stream of some seed."""
        session = self._session(request)
        body = await read_json(request, "seed")
        seed = whole_number("seed", body["seed"], 0, MAX_SEED)
        return await self._compute(session, lambda: session.reset(seed))

    def _session(self, request: Request) -> StreamSession:
        session = self._sessions.find(request.path_params["session"])
        if session is None:
            raise no_session()
        return session

    async def _compute(self, session: StreamSession, compute: Callable[[], None], name: str | None = None) -> Response:
        """Do something with a session, one after the other, and show what came of it."""

        def respond() -> Response:
            compute()
            return JSONResponse({**stream_view(session), **({} if name is None else {"session": name})})

        with session.slots.take():
            return await self._network.run(respond)
