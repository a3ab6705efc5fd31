"""The addresses of the second tab: a stream without end for each page, in sessions of their own."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from srwm.sequential import StreamModel

from .bodies import read_json
from .requests import choice, whole_number
from .session_routes import SessionRoutes
from .stream_learner import StreamLearner
from .stream_session import MAX_STEPS, StreamSession, StreamSessions
from .stream_views import stream_model_view, stream_view
from .tasks import MAX_SEED, TASK_LENGTHS, draw_task


class StreamRoutes(SessionRoutes[StreamSession]):
    """The endpoints.

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
        about, sessions = stream_model_view(name, learner), StreamSessions(learner, clock)
        super().__init__("stream", about, sessions, stream_view, most_waiting)

    def routes(self) -> list[Route]:
        """The addresses."""
        one = self.at + "/{session}"
        return [
            *super().routes(),
            Route(self.at, self.open, methods=["POST"]),
            Route(one + "/steps", self.live, methods=["POST"]),
            Route(one + "/change", self.change, methods=["POST"]),
            Route(one + "/task_length", self.set_task_length, methods=["POST"]),
            Route(one + "/reset", self.reset, methods=["POST"]),
        ]

    async def open(self, request: Request) -> Response:
        """Begin a session, with a stream of some seed."""
        seed = await _seed(request)
        return await self.begin(lambda session: session.reset(seed))

    async def live(self, request: Request) -> Response:
        """Go on for some images."""
        session = self.session(request)
        body = await read_json(request, "count")
        count = whole_number("count", body["count"], 1, MAX_STEPS)
        return await self.compute(session, lambda: session.live(count))

    async def change(self, request: Request) -> Response:
        """Let other classes come now."""
        session = self.session(request)
        await read_json(request)
        return await self.compute(session, session.change)

    async def set_task_length(self, request: Request) -> Response:
        """Say how long classes stay."""
        session = self.session(request)
        body = await read_json(request, "images")
        images = choice("images", body["images"], TASK_LENGTHS)
        return await self.compute(session, lambda: session.set_task_length(images))

    async def reset(self, request: Request) -> Response:
        """Reset, with a stream of some seed."""
        session = self.session(request)
        seed = await _seed(request)
        return await self.compute(session, lambda: session.reset(seed))


async def _seed(request: Request) -> int:
    """Take the seed that a request brings."""
    body = await read_json(request, "seed")
    return whole_number("seed", body["seed"], 0, MAX_SEED)
