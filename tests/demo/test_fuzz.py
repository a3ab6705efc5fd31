"""A thousand broken requests: each gets an answer or a closed connection, and none a server that went wrong."""

import asyncio
import contextlib
import io
import itertools
import json
import logging
import random
import resource
import socket
import sys
import threading

import numpy as np
import pytest
from PIL import Image

from srwm.demo import create_app, listen
from srwm.demo.protocol import Limits
from srwm.demo.serve import make_server

from .asgi import scope_of, send
from .small import CROSS, NAME, RING, small_model

ANSWERS = {200, 400, 403, 404, 405, 409, 413, 415, 416}
"""A server that went wrong says 500; one that is busy says 503, and nothing here keeps it busy."""
MOST_BYTES = 2**30
"""By which the process may grow."""


def pictures():
    pixels = np.arange(24 * 24, dtype=np.uint8).reshape(24, 24)
    for kind in ("PNG", "JPEG", "WEBP", "BMP", "GIF"):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, kind)
        yield file.getvalue()


def requests(session):
    """Sound ones: method, path, query and body."""
    at = f"/api/sessions/{session}"
    bodies = [
        ("teach", {"label": 0, "drawing": {"strokes": CROSS}}),
        ("teach", {"label": 4, "drawing": {"pixels": "A" * 532 + "AA=="}}),
        ("predict", {"drawing": {"strokes": RING}, "time": 0, "label": None}),
        ("rename", {"label": 1, "name": "one"}),
        ("forget", {"number": 1}),
        ("switch", {}),
        ("reset", {}),
    ]
    return [
        *[("POST", f"{at}/{verb}", b"", json.dumps(body).encode()) for verb, body in bodies],
        *[("POST", "/api/pictures", b"ink=auto", data) for data in pictures()],
        ("POST", "/api/sessions", b"", b"{}"),
        ("GET", at, b"", b""),
        ("GET", f"{at}/moments/0", b"", b""),
        ("GET", "/api/samples/17", b"", b""),
        ("GET", "/", b"", b""),
        ("HEAD", "/static/main.js", b"", b""),
    ]


PIECES = [
    *(b"", b"\x00", b"\r\n", b"\r\n\r\n", b"%00", b"%ff", b"../", b"//", b"\xff\xfe", b": ", b" ", b"\t", b",", b'"'),
    *(b"9" * 5000, b"-1", b"1e999", b"NaN", b"0.5", b"null", b"true", b"[]", b"{}", b"\\ud800"),
    *(b"[" * 2000, b'{"a":' * 500, b"A" * 9000, b"\x89PNG\r\n\x1a\n", b"HTTP/1.0", b"HTTP/9.9"),
    *(b"Host: evil.example\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"),
    *(b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"Range: bytes=0-,1-,-1\r\n"),
]


def mutated(data, generator):
    """Cut, doubled, flipped and filled with what breaks things, in one to four places."""
    out = bytearray(data)
    for _ in range(generator.randint(1, 4)):
        start, end = sorted(generator.randrange(len(out) + 1) for _ in range(2))
        end = min(end, start + generator.choice([0, 1, 4, 40, 4000]))
        match generator.randrange(4):
            case 0:
                out[start:end] = generator.choice(PIECES)
            case 1:
                out[start:start] = out[start:end]
            case 2:
                del out[start:end]
            case _:
                out[start:end] = bytes(each ^ (1 << generator.randrange(8)) for each in out[start:end])
    return bytes(out)


HEADERS = [
    (b"content-type", b"application/json"),
    (b"host", b"127.0.0.1:8731"),
    (b"origin", b"http://127.0.0.1:8731"),
    (b"content-length", b"20"),
    (b"range", b"bytes=0-10"),
    (b"sec-fetch-site", b"same-origin"),
    (b"if-none-match", b'"x"'),
    (b"if-modified-since", b"Wed, 18 Nov 2026 20:00:00 GMT"),
    (b"if-range", b'"x"'),
]


def headers_of(generator):
    """Mostly those that a page sends, now and then broken ones."""
    headers = HEADERS[:2] + generator.sample(HEADERS[2:], generator.choice([0, 0, 1, 3]))
    if generator.random() < 0.25:
        place = generator.randrange(len(headers))
        name, value = headers[place]
        headers[place] = (name, mutated(value, generator))
    if generator.random() < 0.1:
        headers.append(generator.choice(headers))
    return headers


def memory_bytes():
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.parametrize("seed", range(5))
def test_two_hundred_broken_requests_each_get_an_answer(seed, caplog):
    generator, before = random.Random(seed), memory_bytes()

    async def run():
        app = create_app(small_model(), NAME, clock=itertools.count(0.0, 3600.0).__next__)
        for _ in range(200):
            opening = scope_of("/api/sessions", "POST", HEADERS[:2])
            session = (await send(app, opening, b"{}")).content["session"]
            method, path, query, body = generator.choice(requests(session))
            what = generator.randrange(4)
            if what == 0:
                path = mutated(path.encode(), generator).decode("utf-8", "replace")
            elif what == 1:
                query = mutated(query or b"ink=auto", generator)
            else:
                body = mutated(body, generator)
            method = generator.choice([method, method, method, "GET", "POST", "PUT", "OPTIONS", "TRACE"])
            cut = generator.randrange(len(body) + 1)
            scope = scope_of(path, method, headers_of(generator), query)
            reply = await send(app, scope, body[:cut], body[cut:], hangs_up=generator.random() < 0.1)
            assert reply.status in ANSWERS | {206, 304, 307}, (scope, body)
            if reply.status >= 400 and reply.headers[b"content-type"] == b"application/json" and method != "HEAD":
                assert reply.content["error"]

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.records == []
    assert memory_bytes() - before < MOST_BYTES


@pytest.fixture(scope="module")
def fuzzed():
    listening = listen(0)
    app = create_app(small_model(), NAME, clock=itertools.count(0.0, 3600.0).__next__)
    server = make_server(app, Limits(head_s=0.1, body_s=0.1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()
    listening.close()


def exchange(port, data):
    """Send bytes and no more after them; give all that comes back until the server closes, which it must."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        answer = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(data)
            while part := connection.recv(65536):
                answer += part
    return answer


@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_broken_heads_each_get_an_answer_or_a_closed_connection(fuzzed, seed, caplog):
    generator = random.Random(1000 + seed)
    sound = b"HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    with caplog.at_level(logging.ERROR):
        for _ in range(100):
            method, path, query, body = generator.choice(requests("none"))
            head = b"%s %s?%s %s" % (method.encode(), path.encode(), query, sound)
            head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            answer = exchange(fuzzed, mutated(head, generator) + body)
            if answer:
                assert int(answer[9:12]) in ANSWERS | {100, 206, 304, 307}, answer[:200]
    assert caplog.records == []
    # And it goes on.
    assert exchange(fuzzed, b"GET /api/model " + sound + b"\r\n").startswith(b"HTTP/1.1 200 ")
