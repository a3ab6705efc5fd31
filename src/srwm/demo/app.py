"""The web application: the page's files, and a small JSON interface."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from srwm.errors import InputError, RunError
from srwm.fewshot import FewShotModel

from .drawing import look_of, read_picture
from .guard import Guard
from .learner import Learner
from .requests import (
    MAX_JSON_BYTES,
    MAX_PICTURE_BYTES,
    class_name,
    drawn_image,
    encode_pixels,
    ink_word,
    parse_body,
    whole_number,
)
from .samples import sample_images
from .session import MAX_EXAMPLES, Session, Sessions
from .views import answer_view, model_view, moment_view, session_view

_STATIC = Path(__file__).parent / "static"
_MOST_SAMPLES = 10**6


def create_app(model: FewShotModel, name: str) -> Starlette:
    """Make the application that shows a model.

    Args:
        model: what `srwm.fewshot.load_model` gave.
        name: what the page calls it.
    """
    demo = _Demo(model, name)
    at = "/api/sessions/{session}"
    return Starlette(
        routes=[
            Route("/", demo.page),
            Mount("/static", StaticFiles(directory=_STATIC)),
            Route("/api/model", demo.about),
            Route("/api/samples/{number:int}", demo.samples),
            Route("/api/pictures", demo.picture, methods=["POST"]),
            Route("/api/sessions", demo.open, methods=["POST"]),
            Route(at, demo.show),
            Route(at + "/moments/{time:int}", demo.moment),
            Route(at + "/teach", demo.teach, methods=["POST"]),
            Route(at + "/forget", demo.forget, methods=["POST"]),
            Route(at + "/switch", demo.switch, methods=["POST"]),
            Route(at + "/reset", demo.reset, methods=["POST"]),
            Route(at + "/rename", demo.rename, methods=["POST"]),
            Route(at + "/predict", demo.predict, methods=["POST"]),
        ],
        middleware=[Middleware(Guard)],
        exception_handlers={
            HTTPException: _refuse,
            InputError: lambda request, error: _error(400, str(error)),
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

    They compute where they are called, in the server's one thread: an answer takes a few milliseconds, and so no two
    requests ever meet in a session.
    """

    def __init__(self, model: FewShotModel, name: str) -> None:
        self._learner = Learner(model)
        self._look = look_of(model.config.task.source)
        self._shape = model.image_shape
        self._about = model_view(name, self._learner, self._look)
        self._sessions = Sessions(self._learner)

    async def page(self, request: Request) -> Response:
        return FileResponse(_STATIC / "index.html")

    async def about(self, request: Request) -> Response:
        return JSONResponse(self._about)

    async def samples(self, request: Request) -> Response:
        number = whole_number("number", request.path_params["number"], 0, _MOST_SAMPLES)
        pairs = sample_images(number, self._learner.model.ways, self._shape)
        return JSONResponse([[encode_pixels(image) for image in pair] for pair in pairs])

    async def picture(self, request: Request) -> Response:
        ink = ink_word(request.query_params.get("ink", "auto"))
        data = await _read(request, MAX_PICTURE_BYTES)
        image, inverted = read_picture(data, self._look, self._shape, ink)
        return JSONResponse({"pixels": encode_pixels(image), "inverted": inverted})

    async def open(self, request: Request) -> Response:
        await _read_json(request)
        name = self._sessions.open()
        session = self._sessions.find(name)
        assert session is not None
        return self._view(session, {"session": name})

    async def show(self, request: Request) -> Response:
        return self._view(self._session(request))

    async def moment(self, request: Request) -> Response:
        session = self._session(request)
        time = whole_number("time", request.path_params["time"], 0, MAX_EXAMPLES)
        return JSONResponse({"layers": moment_view(session.moment(time))})

    async def teach(self, request: Request) -> Response:
        session = self._session(request)
        body = await _read_json(request, "label", "drawing")
        session.teach(self._label(body["label"]), drawn_image(body["drawing"], self._look, self._shape))
        return self._view(session)

    async def forget(self, request: Request) -> Response:
        session = self._session(request)
        body = await _read_json(request, "number")
        session.forget(whole_number("number", body["number"], 1, 2**53))
        return self._view(session)

    async def switch(self, request: Request) -> Response:
        return await self._change(request, Session.switch)

    async def reset(self, request: Request) -> Response:
        return await self._change(request, Session.reset)

    async def rename(self, request: Request) -> Response:
        session = self._session(request)
        body = await _read_json(request, "label", "name")
        session.rename(self._label(body["label"]), class_name(body["name"]))
        return self._view(session)

    async def predict(self, request: Request) -> Response:
        session = self._session(request)
        body = await _read_json(request, "drawing", "time", "label")
        time = whole_number("time", body["time"], 0, MAX_EXAMPLES)
        label = None if body["label"] is None else self._label(body["label"])
        image = drawn_image(body["drawing"], self._look, self._shape)
        answer, moment = session.look(image, time, label)
        return JSONResponse(
            {**answer_view(answer), "pixels": encode_pixels(image), "layers": moment_view(moment)},
        )

    async def _change(self, request: Request, change: Callable[[Session], None]) -> Response:
        session = self._session(request)
        await _read_json(request)
        change(session)
        return self._view(session)

    def _label(self, value: Any) -> int:
        return whole_number("label", value, 0, self._learner.model.ways - 1)

    def _session(self, request: Request) -> Session:
        session = self._sessions.find(request.path_params["session"])
        if session is None:
            raise HTTPException(404, "there is no such session, or it has made place for newer ones; begin anew")
        return session

    def _view(self, session: Session, more: Mapping[str, Any] | None = None) -> Response:
        """Show a session, and the network as it is now."""
        return JSONResponse({**session_view(session), "layers": moment_view(session.moments[-1]), **(more or {})})


async def _read(request: Request, most_bytes: int) -> bytes:
    """Read the body of a request, and stop when it is too long."""
    sentence = f"the request is longer than {most_bytes:,} bytes"
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or int(length) > most_bytes:
        raise HTTPException(413, sentence)
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most_bytes:
            raise HTTPException(413, sentence)
    return bytes(data)


async def _read_json(request: Request, *keys: str) -> dict[str, Any]:
    """Read a request that is a JSON object with exactly these keys."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # Forms, which other sites can send without asking first, are of other kinds.
    if kind != "application/json":
        raise HTTPException(415, "the request is not marked as application/json")
    return parse_body(await _read(request, MAX_JSON_BYTES), *keys)
