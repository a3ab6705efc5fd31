"""The interface of the second tab, over a real server, and what it refuses."""

import asyncio
import base64
import itertools
import json
import logging
import random

import numpy as np
import pytest

from srwm.demo import create_app
from srwm.demo.stream_history import RECENT, RUNNING, SHOWN
from srwm.demo.stream_session import MAX_STEPS, StreamSession
from srwm.demo.tasks import MAX_SEED, TASK_LENGTHS, draw_task
from srwm.errors import InputError

from .asgi import HOST, JSON, call, post, scope_of, send
from .small import CROSS, NAME, small_model
from .small_stream import GATED, SIZE, STREAM_NAME, WAYS, StreamPage, small_stream_model
from .test_bounds import Gate
from .test_fuzz import ANSWERS, headers_of, mutated
from .test_numbers import VALUES


def test_where_there_is_no_model_of_streams_there_are_no_streams(page):
    assert page.get("/api/stream") == {"stream": None}
    assert page.send("POST", "/api/stream/sessions", {"seed": 0})[0] == 404


def test_the_model_is_described(stream_page):
    about = stream_page.get("/api/stream")["stream"]
    assert (about["name"], about["ways"], about["image_size"], about["channels"]) == (STREAM_NAME, WAYS, SIZE, 1)
    assert about["sources"] == ["Strokes", "its negatives"]
    assert about["layers"] == [{"heads": 2, "rows": 4, "columns": [4, 4, 4, 4, 2], "keeps_least": 0.9}] * 2
    assert about["task_lengths"] == list(TASK_LENGTHS)
    assert about["limits"] == {"steps": MAX_STEPS, "seed": MAX_SEED}


def test_sources_are_named_as_in_a_sentence():
    sources = ("omniglot", "strokes+inverted", "strokes", "omniglot+inverted")
    stream = small_stream_model(sources=sources), "some"
    about = call(create_app(small_model(), NAME, stream=stream), "/api/stream").content["stream"]
    assert about["sources"] == ["Omniglot", "Strokes negatives", "Strokes", "its negatives"]


def test_a_model_without_gates_says_so():
    about = call(create_app(small_model(), NAME, stream=(small_stream_model(), "some")), "/api/stream").content
    assert [layer["keeps_least"] for layer in about["stream"]["layers"]] == [None, None]


def test_a_new_stream_has_seen_nothing(stream_port):
    view = StreamPage(stream_port).open(seed=MAX_SEED)
    assert (view["seed"], view["steps"], view["shown"], view["recent"], view["is_dead"]) == (MAX_SEED, 0, [], [], False)
    assert [(layer["rates"], layer["kept"], layer["peak"], layer["moved"]) for layer in view["layers"]] == [
        (None, None, 0, 0)
    ] * 2
    assert view["task_length"] in TASK_LENGTHS


def test_as_many_images_as_were_asked_for_are_lived(stream_page):
    view = stream_page.live(50)
    assert view["steps"] == len(view["recent"]) == 50
    assert view["right"] == sum(right for _, right in view["recent"])
    assert view["running"] == [sum(right for _, right in view["recent"][-RUNNING:]), RUNNING]
    assert [each["step"] for each in view["shown"]] == list(range(51 - SHOWN, 51))
    assert sum(images for _, images in view["instances"]) == 50
    assert sum(images for images, _, _ in view["bins"]["list"]) == 50
    assert view["norm"] == pytest.approx(view["bins"]["list"][-1][2])
    view = stream_page.live(MAX_STEPS)
    view = stream_page.live(MAX_STEPS)
    assert (view["steps"], len(view["recent"]), len(view["shown"])) == (50 + 2 * MAX_STEPS, RECENT, SHOWN)


def test_what_is_shown_is_what_the_network_sees(stream_page):
    shown = stream_page.live(3)["shown"]
    task = draw_task(small_stream_model(), 0, 0)
    for i, each in enumerate(shown):
        assert base64.b64decode(each["pixels"]) == task.images[i].numpy().tobytes()
        assert (each["label"], each["is_inverted"]) == (task.labels[i], task.is_inverted)
        assert sum(each["probabilities"]) == pytest.approx(1, abs=1e-3)
        assert each["answer"] == int(np.argmax(each["probabilities"]))


def test_the_matrices_are_shown_with_their_rates_and_gates(stream_page):
    for layer in stream_page.live(5)["layers"]:
        change = np.frombuffer(base64.b64decode(layer["change"]), np.int8)
        assert len(change) == 2 * 4 * 18
        assert np.abs(change).max() == 127
        assert layer["moved"] > 0
        assert np.array(layer["rates"]).shape == (2, 4)
        kept = np.array(layer["kept"])
        assert kept.shape == (2, 2)
        assert ((kept > 0.9) & (kept < 1)).all()


def test_a_seed_and_a_number_of_images_say_all(stream_page, stream_port):
    other = StreamPage(stream_port)
    other.open()
    for count in (1, 30, 9):
        stream_page.live(count)
    assert other.live(40) == stream_page.get(stream_page.session)
    third = StreamPage(stream_port)
    third.open(seed=1)
    assert third.live(40)["shown"] != other.get(other.session)["shown"]


def test_the_tasks_can_be_changed_and_made_longer(stream_page):
    stream_page.live(2)
    assert stream_page.change("change")["task"] == 1
    assert stream_page.change("task_length", images=15)["task_length"] == 15
    view = stream_page.live(16)
    assert [task for task, _ in view["recent"]] == [0] * 2 + [1] * 15 + [2]


def test_a_reset_begins_anew(stream_page, stream_port):
    fresh = StreamPage(stream_port).open(seed=9)
    del fresh["session"]
    stream_page.live(30)
    assert stream_page.change("reset", seed=9) == fresh


def test_sessions_of_the_tabs_do_not_know_of_each_other(stream_page):
    name = stream_page.session.rpartition("/")[2]
    assert stream_page.send("GET", f"/api/sessions/{name}")[0] == 404
    stream_page.live(3)
    taught = stream_page.post("/api/sessions", {})["session"]
    assert stream_page.send("GET", f"/api/stream/sessions/{taught}")[0] == 404
    stream_page.post(f"/api/sessions/{taught}/teach", {"label": 0, "drawing": {"strokes": CROSS}})
    assert stream_page.get(stream_page.session)["steps"] == 3


@pytest.mark.parametrize(
    ("verb", "body", "words"),
    [
        ("steps", {"count": 0}, f"count is 0; expected a whole number from 1 to {MAX_STEPS}"),
        ("steps", {"count": MAX_STEPS + 1}, f"count is {MAX_STEPS + 1}"),
        ("steps", {"count": True}, "count is True"),
        ("steps", {"count": "9"}, "count is '9'"),
        ("steps", {}, "lacks the key 'count'"),
        ("steps", {"count": 1, "more": 1}, "has the key 'more'; expected count"),
        ("task_length", {"images": 16}, "images is 16; expected one of 15, 30, 75"),
        ("task_length", {"images": True}, "images is True"),
        ("task_length", {"images": 30.0}, "images is 30.0"),
        ("reset", {"seed": -1}, f"seed is -1; expected a whole number from 0 to {MAX_SEED}"),
        ("reset", {"seed": MAX_SEED + 1}, "seed is 2147483648"),
        ("change", {"x": 1}, "expected nothing"),
        ("change", b"[]", "not valid JSON: it does not hold an object"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(stream_page, verb, body, words):
    status, _, content = stream_page.send(
        "POST", f"{stream_page.session}/{verb}", body, {"content-type": "application/json"}
    )
    assert status == 400
    assert words in content["error"]
    assert stream_page.get(stream_page.session)["steps"] == 0


@pytest.fixture(scope="module")
def app():
    return create_app(small_model(), NAME, stream=(small_stream_model(**GATED), STREAM_NAME), clock=lambda: 0.0)


@pytest.fixture(scope="module")
def session(app):
    return f"/api/stream/sessions/{post(app, '/api/stream/sessions', {'seed': 0}).content['session']}"


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_no_value_anywhere_in_a_body_breaks_the_server(app, session, value):
    for path, pattern in (
        (f"{session}/steps", '{"count": %s}'),
        (f"{session}/task_length", '{"images": %s}'),
        (f"{session}/reset", '{"seed": %s}'),
        (f"{session}/change", "%s"),
        ("/api/stream/sessions", '{"seed": %s}'),
    ):
        reply = post(app, path, (pattern % value).encode())
        assert reply.status == 400, path
        assert len(reply.content["error"]) < 260
    assert call(app, session).content["steps"] == 0


def test_other_kinds_methods_and_names_are_refused(app, session):
    assert call(app, f"{session}/steps", "POST", (HOST,), b'{"count": 1}').status == 415
    assert call(app, f"{session}/steps").status == 405
    assert call(app, session, "DELETE").status == 405
    for name in ("none", "\x00", "é", "a" * 60_000, ".."):
        assert call(app, f"/api/stream/sessions/{name}").status == 404
        assert post(app, f"/api/stream/sessions/{name}/steps", {"count": 1}).status == 404
    assert "begin anew" in call(app, "/api/stream/sessions/none").content["error"]


def test_foreign_pages_get_nothing(app, session):
    for header in ((b"origin", b"http://elsewhere.example"), (b"sec-fetch-site", b"cross-site")):
        assert call(app, f"{session}/steps", "POST", (HOST, JSON, header), b'{"count": 1}').status == 403
    assert call(app, "/api/stream", headers=((b"host", b"elsewhere.example"),)).status == 403
    assert call(app, session).content["steps"] == 0


def test_a_model_that_no_characters_can_be_drawn_for_is_refused_at_once():
    model = small_stream_model()
    model.image_shape = (1, 7, 7)
    with pytest.raises(InputError, match="image_size=7"):
        create_app(small_model(), NAME, stream=(model, "tiny"))


@pytest.mark.parametrize("seed", range(2))
def test_a_hundred_broken_requests_each_get_an_answer(seed, caplog):
    generator = random.Random(seed)

    async def run():
        app = new_app()
        for _ in range(100):
            opening = await asked(app, "/api/stream/sessions", {"seed": 0})
            at = f"/api/stream/sessions/{opening.content['session']}"
            bodies = {"steps": {"count": 3}, "reset": {"seed": 5}, "change": {}, "task_length": {"images": 15}}
            verb = generator.choice([*bodies])
            path, body = f"{at}/{verb}".encode(), json.dumps(bodies[verb]).encode()
            if generator.random() < 0.3:
                path = mutated(path, generator)
            else:
                body = mutated(body, generator)
            method = generator.choice(["POST", "POST", "POST", "GET", "PUT"])
            scope = scope_of(path.decode("utf-8", "replace"), method, headers_of(generator))
            reply = await send(app, scope, body, hangs_up=generator.random() < 0.1)
            assert reply.status in ANSWERS | {304, 307}, (scope, body)
            if reply.status >= 400 and reply.headers[b"content-type"] == b"application/json":
                assert reply.content["error"]

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.records == []


def asked(app, path, body):
    return send(app, scope_of(path, "POST", (HOST, JSON)), json.dumps(body).encode())


def new_app():
    stream = small_stream_model(**GATED), STREAM_NAME
    return create_app(small_model(), NAME, stream=stream, clock=itertools.count(0.0, 3600.0).__next__)


def test_while_one_stream_is_computed_who_teaches_is_answered(monkeypatch):
    gate, plain = Gate(), StreamSession.live
    monkeypatch.setattr(StreamSession, "live", lambda self, count: (gate(), plain(self, count))[1])

    async def run():
        app = new_app()
        stream = (await asked(app, "/api/stream/sessions", {"seed": 0})).content["session"]
        taught = (await asked(app, "/api/sessions", {})).content["session"]
        waiting = asyncio.create_task(asked(app, f"/api/stream/sessions/{stream}/steps", {"count": 3}))
        await gate.reached()
        body = {"label": 0, "drawing": {"strokes": CROSS}}
        assert (await asked(app, f"/api/sessions/{taught}/teach", body)).status == 200
        gate.opened.set()
        assert (await waiting).content["steps"] == 3

    asyncio.run(run())


def test_what_is_too_much_at_once_is_refused_and_changes_nothing(monkeypatch):
    gate, plain = Gate(), StreamSession.live
    monkeypatch.setattr(StreamSession, "live", lambda self, count: (gate(), plain(self, count))[1])

    async def run():
        app = new_app()
        path = f"/api/stream/sessions/{(await asked(app, '/api/stream/sessions', {'seed': 0})).content['session']}"
        first = asyncio.create_task(asked(app, f"{path}/steps", {"count": 1}))
        await gate.reached()
        more = [asyncio.create_task(asked(app, f"{path}/steps", {"count": 1})) for _ in range(9)]
        await asyncio.sleep(0)
        gate.opened.set()
        statuses = [(await each).status for each in (first, *more)]
        assert sorted(statuses) == [200] * 8 + [503] * 2
        assert (await send(app, scope_of(path))).content["steps"] == 8

    asyncio.run(run())


def test_when_all_sessions_are_in_use_a_new_page_gets_a_sentence():
    async def run():
        app = create_app(small_model(), NAME, stream=(small_stream_model(), "some"), clock=lambda: 0.0)
        for _ in range(32):
            assert (await asked(app, "/api/stream/sessions", {"seed": 0})).status == 200
        reply = await asked(app, "/api/stream/sessions", {"seed": 0})
        assert reply.status == 503
        assert "there are 32 sessions, as many as fit" in reply.content["error"]
        # Those of the first tab have places of their own.
        assert (await asked(app, "/api/sessions", {})).status == 200

    asyncio.run(run())
