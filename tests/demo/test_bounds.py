"""However much is asked for at once, others are answered, and what is too much is refused with a sentence."""

import asyncio
import itertools
import threading

import pytest

from srwm.demo import app as demo_app
from srwm.demo import create_app
from srwm.demo.bounds import Busy, Slots, Worker
from srwm.demo.learner import DrawingLearner
from srwm.demo.session import MAX_WAITING

from .asgi import HOST, JSON, scope_of, send
from .small import CROSS, NAME, small_model

WAIT_S = 60
"""After which a test gives up; none waits for it to pass."""


class Gate:
    """Holds up whoever calls it until it is opened."""

    def __init__(self):
        self.entered, self.opened = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self):
        self.calls += 1
        self.entered.set()
        assert self.opened.wait(WAIT_S)

    async def reached(self):
        while not self.entered.is_set():
            await asyncio.sleep(0.001)


def new_app():
    return create_app(small_model(), NAME, clock=itertools.count(0.0, 3600.0).__next__)


def teach(app, session):
    body = f'{{"label": 0, "drawing": {{"strokes": {CROSS}}}}}'.encode()
    return send(app, scope_of(f"/api/sessions/{session}/teach", "POST", (HOST, JSON)), body)


def picture(app):
    return send(app, scope_of("/api/pictures", "POST", (HOST,)), b"GIF89a")


async def opened(app):
    return (await send(app, scope_of("/api/sessions", "POST", (HOST, JSON)), b"{}")).content["session"]


def test_slots_are_given_back_however_it_ends():
    slots = Slots(2, "things")
    with slots.take(), slots.take(), pytest.raises(Busy, match="busy with 2 things"), slots.take():
        pass
    with pytest.raises(ValueError, match="broken"), slots.take():
        raise ValueError("broken")
    with slots.take(), slots.take():
        pass


def test_a_worker_computes_in_one_thread_and_in_order():
    async def run():
        worker = Worker("test", Slots(100, "requests"))
        return await asyncio.gather(*[worker.run(lambda i=i: (i, threading.get_ident())) for i in range(50)])

    numbers, threads = zip(*asyncio.run(run()), strict=True)
    assert numbers == tuple(range(50))
    assert set(threads) != {threading.get_ident()}
    assert len(set(threads)) == 1


def test_while_one_drawing_is_computed_others_are_answered(monkeypatch):
    gate, plain = Gate(), DrawingLearner.features
    monkeypatch.setattr(DrawingLearner, "features", lambda self, image: (gate(), plain(self, image))[1])

    async def run():
        app = new_app()
        session = await opened(app)
        slow = asyncio.create_task(teach(app, session))
        await gate.reached()
        for path in ("/", "/static/main.js", "/api/model"):
            assert (await send(app, scope_of(path))).status == 200
        # Another page's drawing waits its turn, and a picture does not have to.
        other = asyncio.create_task(send(app, scope_of(f"/api/sessions/{session}")))
        assert (await picture(app)).status == 400
        assert not slow.done()
        assert not other.done()
        gate.opened.set()
        assert [(await each).status for each in (slow, other)] == [200, 200]

    asyncio.run(run())


def test_while_one_picture_is_read_drawings_are_answered(monkeypatch):
    gate, plain = Gate(), demo_app.read_picture
    monkeypatch.setattr(demo_app, "read_picture", lambda *args: (gate(), plain(*args))[1])

    async def run():
        app = new_app()
        slow = asyncio.create_task(picture(app))
        await gate.reached()
        assert (await teach(app, await opened(app))).status == 200
        assert not slow.done()
        gate.opened.set()
        assert (await slow).status == 400

    asyncio.run(run())


def test_of_too_many_pictures_those_that_come_last_are_refused_and_one_is_read_at_a_time(monkeypatch):
    gate, plain = Gate(), demo_app.read_picture
    monkeypatch.setattr(demo_app, "read_picture", lambda *args: (gate(), plain(*args))[1])

    async def run():
        app = new_app()
        taken = [asyncio.create_task(picture(app)) for _ in range(8)]
        await gate.reached()
        reply = await picture(app)
        assert (reply.status, reply.content["error"]) == (
            503,
            "the server is busy with 8 pictures, its most; try again in a moment",
        )
        assert gate.calls == 1
        gate.opened.set()
        assert [(await each).status for each in taken] == [400] * 8
        assert (await picture(app)).status == 400

    asyncio.run(run())


def test_of_too_many_drawings_those_that_come_last_are_refused_and_change_nothing(monkeypatch):
    gate, plain = Gate(), DrawingLearner.features
    monkeypatch.setattr(DrawingLearner, "features", lambda self, image: (gate(), plain(self, image))[1])
    monkeypatch.setattr(demo_app, "_MOST_WAITING", 4)

    async def run():
        app = new_app()
        session = await opened(app)
        first = asyncio.create_task(teach(app, session))
        await gate.reached()
        replies = asyncio.gather(*[teach(app, session) for _ in range(5)])
        await asyncio.sleep(0)
        gate.opened.set()
        statuses = sorted(each.status for each in await replies)
        assert (await first).status == 200
        assert statuses == [200] * 3 + [503] * 2
        assert len((await send(app, scope_of(f"/api/sessions/{session}"))).content["examples"]) == 4

    asyncio.run(run())


def test_one_page_cannot_take_the_places_of_all_others(monkeypatch):
    gate, plain = Gate(), DrawingLearner.features
    monkeypatch.setattr(DrawingLearner, "features", lambda self, image: (gate(), plain(self, image))[1])

    async def run():
        app = new_app()
        greedy, other = await opened(app), await opened(app)
        first = asyncio.create_task(teach(app, greedy))
        await gate.reached()
        taken = [asyncio.create_task(teach(app, greedy)) for _ in range(MAX_WAITING - 1)]
        await asyncio.sleep(0)
        reply = await teach(app, greedy)
        assert (reply.status, reply.content["error"]) == (
            503,
            "the server is busy with 8 requests of this page, its most; try again in a moment",
        )
        mine = asyncio.create_task(teach(app, other))
        gate.opened.set()
        assert [(await each).status for each in (first, *taken, mine)] == [200] * (MAX_WAITING + 1)

    asyncio.run(run())


def test_when_all_sessions_are_in_use_a_new_page_gets_a_sentence_and_the_others_go_on():
    async def run():
        app = create_app(small_model(), NAME, clock=lambda: 0.0)
        sessions = [await opened(app) for _ in range(32)]
        reply = await send(app, scope_of("/api/sessions", "POST", (HOST, JSON)), b"{}")
        assert reply.status == 503
        assert "there are 32 sessions, as many as fit" in reply.content["error"]
        assert all([(await send(app, scope_of(f"/api/sessions/{each}"))).status == 200 for each in sessions])

    asyncio.run(run())
