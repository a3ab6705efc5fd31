"""The web application: the page's files, and a small JSON interface."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from srwm.errors import InputError, RunError
from srwm.fewshot import FewShotModel
from srwm.sequential import StreamModel

from .bodies import no_session, read_body, read_json
from .bounds import Busy, Slots, Worker
from .drawing import look_of, read_picture
from .guard import Guard
from .learner import DrawingLearner
from .requests import (
    MAX_PICTURE_BYTES,
    class_name,
    drawn_image,
    encode_pixels,
    ink_word,
    number_in_path,
    whole_number,
)
from .samples import sample_images
from .session import MAX_EXAMPLES, Session, Sessions
from .session_routes import about_route
from .stream_routes import StreamRoutes
from .tracking_learner import TrackingLearner
from .tracking_routes import TrackingRoutes
from .views import answer_view, model_view, moment_view, session_view

_STATIC = Path(__file__).parent / "static"
_MOST_SAMPLES = 10**6
_MOST_WAITING = 64
"""Requests about sessions that are computed or wait for it."""
_MOST_PICTURES = 8
"""Pictures that are on their way or wait to be read."""


def create_app(
    model: FewShotModel,
    name: str,
    *,
    stream: tuple[StreamModel, str] | None = None,
    tracking: Sequence[tuple[object, str]] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Starlette:
    """Make the application that shows a model.

    Args:
        model: what `srwm.fewshot.load_model` gave.
        name: what the page calls it.
        stream: what `srwm.sequential.load_stream_model` gave, and what the page calls it; None leaves the streams out.
        tracking: networks of one language side by side, as `srwm.languages.load_tracker` gives them, and what the page
            calls each; none leave the tab out.
        clock: gives seconds, by which sessions that are out of use are known.

    Raises:
        InputError: if no characters can be drawn for the model of streams, or the networks of languages do not go
            together.
    """
    demo = _Demo(model, name, clock)
    streams, trackings = [about_route("stream", None)], [about_route("tracking", None)]
    if stream is not None:
        streams = StreamRoutes(*stream, _MOST_WAITING, clock).routes()
    if tracking:
        trackings = TrackingRoutes(TrackingLearner(tracking), _MOST_WAITING, clock).routes()
    at = "/api/sessions/{session}"
    return Starlette(
        routes=[
            Route("/", demo.page),
            Mount("/static", StaticFiles(directory=_STATIC)),
            Route("/api/model", demo.about),
            Route("/api/samples/{number}", demo.samples),
            Route("/api/pictures", demo.picture, methods=["POST"]),
            Route("/api/sessions", demo.open, methods=["POST"]),
            Route(at, demo.show),
            Route(at + "/moments/{time}", demo.moment),
            Route(at + "/teach", demo.teach, methods=["POST"]),
            Route(at + "/forget", demo.forget, methods=["POST"]),
            Route(at + "/switch", demo.switch, methods=["POST"]),
            Route(at + "/reset", demo.reset, methods=["POST"]),
            Route(at + "/rename", demo.rename, methods=["POST"]),
            Route(at + "/predict", demo.predict, methods=["POST"]),
            *streams,
            *trackings,
        ],
        middleware=[Middleware(Guard)],
        exception_handlers={
            HTTPException: _refuse,
            ClientDisconnect: lambda request, error: _error(400, "the request was broken off"),
            InputError: lambda request, error: _error(400, str(error)),
            Busy: lambda request, error: _error(503, str(error)),
            RunError: lambda request, error: _error(409, str(error)),
            Exception: lambda request, error: _error(500, "something went wrong in the server; its output says what"),
        },
    )


def _error(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status_code=status)


def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, error.detail)


class _Demo:
    """The endpoints.

    All that concerns sessions is computed in one thread, and so no two requests ever meet in a session. Pictures, which
    take longer, are read in another. The server's own thread only reads and writes: whatever one page asks for, the
    others are answered.
    """

    def __init__(self, model: FewShotModel, name: str, clock: Callable[[], float]) -> None:
        self._learner = DrawingLearner(model)
        self._look = look_of(model.config.task.source)
        self._shape = model.image_shape
        self._about = model_view(name, self._learner, self._look)
        self._sessions = Sessions(self._learner, clock)
        self._network = Worker("network", Slots(_MOST_WAITING, "requests"))
        self._pictures = Worker("pictures", Slots(_MOST_PICTURES, "pictures"))
        # Taken while a picture is still on its way, too: they are large.
        self._uploads = Slots(_MOST_PICTURES, "pictures")

    async def page(self, request: Request) -> Response:
        return FileResponse(_STATIC / "index.html")

    async def about(self, request: Request) -> Response:
        return JSONResponse(self._about)

    async def samples(self, request: Request) -> Response:
        number = number_in_path("number", request.path_params["number"], 0, _MOST_SAMPLES)

        def draw() -> Response:
            pairs = sample_images(number, self._learner.model.ways, self._shape)
            return JSONResponse([[encode_pixels(image) for image in pair] for pair in pairs])

        return await self._network.run(draw)

    async def picture(self, request: Request) -> Response:
        ink = ink_word(request.query_params.get("ink", "auto"))
        with self._uploads.take():
            data = await read_body(request, MAX_PICTURE_BYTES)
            image, inverted = await self._pictures.run(lambda: read_picture(data, self._look, self._shape, ink))
        return JSONResponse({"pixels": encode_pixels(image), "inverted": inverted})

    async def open(self, request: Request) -> Response:
        await read_json(request)
        name = self._sessions.open()
        session = self._sessions.find(name)
        assert session is not None
        return await self._compute(session, lambda: self._view(session, {"session": name}))

    async def show(self, request: Request) -> Response:
        session = self._session(request)
        return await self._compute(session, lambda: self._view(session))

    async def moment(self, request: Request) -> Response:
        session = self._session(request)
        seen = number_in_path("time", request.path_params["time"], 0, MAX_EXAMPLES)
        return await self._compute(session, lambda: JSONResponse({"layers": moment_view(session.moment(seen))}))

    async def teach(self, request: Request) -> Response:
        def teach(session: Session, body: dict[str, Any]) -> None:
            label = self._label(body["label"])
            session.teach(label, drawn_image(body["drawing"], self._look, self._shape))

        return await self._change(request, teach, "label", "drawing")

    async def forget(self, request: Request) -> Response:
        def forget(session: Session, body: dict[str, Any]) -> None:
            session.forget(whole_number("number", body["number"], 1, 2**53))

        return await self._change(request, forget, "number")

    async def switch(self, request: Request) -> Response:
        return await self._change(request, lambda session, body: session.switch())

    async def reset(self, request: Request) -> Response:
        return await self._change(request, lambda session, body: session.reset())

    async def rename(self, request: Request) -> Response:
        def rename(session: Session, body: dict[str, Any]) -> None:
            session.rename(self._label(body["label"]), class_name(body["name"]))

        return await self._change(request, rename, "label", "name")

    async def predict(self, request: Request) -> Response:
        session = self._session(request)
        body = await read_json(request, "drawing", "time", "label")

        def predict() -> Response:
            seen = whole_number("time", body["time"], 0, MAX_EXAMPLES)
            label = None if body["label"] is None else self._label(body["label"])
            image = drawn_image(body["drawing"], self._look, self._shape)
            answer, moment = session.look(image, seen, label)
            return JSONResponse(
                {**answer_view(answer), "pixels": encode_pixels(image), "layers": moment_view(moment)},
            )

        return await self._compute(session, predict)

    async def _change(
        self, request: Request, change: Callable[[Session, dict[str, Any]], None], *keys: str
    ) -> Response:
        """Change a session as a request with these keys says, and show what came of it."""
        session = self._session(request)
        body = await read_json(request, *keys)

        def compute() -> Response:
            change(session, body)
            return self._view(session)

        return await self._compute(session, compute)

    async def _compute(self, session: Session, compute: Callable[[], Response]) -> Response:
        """Compute something about a session, one after the other."""
        with session.slots.take():
            return await self._network.run(compute)

    def _label(self, value: Any) -> int:
        return whole_number("label", value, 0, self._learner.model.ways - 1)

    def _session(self, request: Request) -> Session:
        session = self._sessions.find(request.path_params["session"])
        if session is None:
            raise no_session()
        return session

    def _view(self, session: Session, more: Mapping[str, Any] | None = None) -> Response:
        """Show a session, and the network as it is now."""
        return JSONResponse({**session_view(session), "layers": moment_view(session.moments[-1]), **(more or {})})
