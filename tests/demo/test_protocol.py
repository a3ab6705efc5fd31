"""Connections that take too long are ended, and those that do their work are not."""

import asyncio
import logging
import socket
import threading
from contextlib import contextmanager

import pytest
from uvicorn.server import ServerState

from srwm.demo import listen
from srwm.demo.protocol import BoundedConfig, BoundedProtocol, Limits
from srwm.demo.serve import make_server

HEAD = b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n"
LAST = HEAD + b"connection: close\r\n"
WAIT_S = 60
"""After which a test gives up; none waits for it to pass."""


async def echo(scope, receive, send):
    """Answer with the length of the body."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length, more = length + len(message["body"]), message["more_body"]
    body = str(length).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


async def refuse_early(scope, receive, send):
    """Answer without reading the body."""
    await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


async def flood(scope, receive, send):
    """Answer with more than any buffer holds."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(1000):
        await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})
    await send({"type": "http.response.body"})


@contextmanager
def serving(app, **limits):
    listening = listen(0)
    server = make_server(app, Limits(**limits))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)


def rest(connection):
    """All that comes until the other side ends."""
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


@pytest.mark.parametrize("beginning", [b"", b"P", HEAD, HEAD + b"x-more: " + b"x" * 5000])
def test_a_head_that_does_not_end_ends_the_connection(beginning):
    with serving(echo, head_s=0.05) as port, connect(port) as connection:
        connection.sendall(beginning)
        assert rest(connection) == b""


@pytest.mark.parametrize(
    "beginning",
    [
        b"content-length: 9\r\n\r\n12345678",
        b"transfer-encoding: chunked\r\n\r\n1\r\n1\r\n",
        b"content-length: 9\r\n\r\n",
    ],
)
def test_a_body_that_does_not_end_ends_the_connection(beginning):
    with serving(echo, body_s=0.05) as port, connect(port) as connection:
        connection.sendall(HEAD + beginning)
        assert rest(connection) == b""


def test_a_body_that_goes_on_after_it_was_refused_ends_too():
    with serving(refuse_early, body_s=0.05) as port, connect(port) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        assert rest(connection).startswith(b"HTTP/1.1 413 ")


def test_who_does_not_read_the_answer_is_cut_off():
    with serving(flood, answer_s=0.05) as port, connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        connection.recv(1)
        # As much as the buffers held, and no more.
        assert len(rest(connection)) < 500 * 2**20


@pytest.mark.parametrize(
    "junk",
    [b"zz\r\n", b"1\r\nxx", b"-1\r\n\r\n", b"fffffffffffffffffffffffff\r\n"],
    ids=["size", "end", "sign", "large"],
)
@pytest.mark.parametrize("app", [echo, refuse_early])
def test_broken_chunks_are_answered_at_most_once_and_leave_no_trace(app, junk, caplog):
    with caplog.at_level(logging.ERROR), serving(app) as port, connect(port) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        if app is refuse_early:
            assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
        connection.sendall(junk)
        data = rest(connection)
    assert data.count(b"HTTP/1.1") == (1 if app is echo else 0)
    assert app is refuse_early or data.startswith(b"HTTP/1.1 400 ")
    assert caplog.records == []


def test_of_too_many_connections_the_one_that_waits_longest_is_ended():
    with serving(echo, connections=3) as port, connect(port) as first, connect(port) as second, connect(port) as third:
        third.sendall(LAST + b"content-length: 2\r\n\r\n1")
        with connect(port) as fourth:
            assert rest(first) == b""
            second.sendall(LAST + b"content-length: 0\r\n\r\n")
            assert rest(second).endswith(b"\r\n0")
            third.sendall(b"2")
            assert rest(third).endswith(b"\r\n2")
            fourth.sendall(LAST + b"content-length: 0\r\n\r\n")
            assert rest(fourth).endswith(b"\r\n0")


class Timers(asyncio.AbstractEventLoop):
    """An event loop in which time passes only when it is told to."""

    def __init__(self):
        self.now, self.timers = 0.0, []

    def call_later(self, delay, callback):
        handle = asyncio.TimerHandle(self.now + delay, callback, (), self)
        self.timers.append(handle)
        return handle

    def _timer_handle_cancelled(self, handle):
        pass

    def get_debug(self):
        return False

    def create_task(self, coroutine):
        coroutine.close()
        return asyncio.Future(loop=self)

    def call_exception_handler(self, context):
        raise AssertionError(context)

    def pass_time(self, seconds):
        self.now += seconds
        for handle in [each for each in self.timers if each.when() <= self.now]:
            self.timers.remove(handle)
            if not handle.cancelled():
                handle._run()


class Transport(asyncio.Transport):
    """A connection without another side."""

    def __init__(self):
        super().__init__()
        self.is_cut = False

    def get_extra_info(self, name, default=None):
        return default

    def abort(self):
        self.is_cut = True

    def is_closing(self):
        return self.is_cut


def connected(timers, limits, state):
    config = BoundedConfig(echo, limits, ws="none", lifespan="off", log_config=None)
    protocol = BoundedProtocol(config, state, {}, timers)
    transport = Transport()
    protocol.connection_made(transport)
    return protocol, transport


def test_more_bytes_give_no_more_time():
    timers = Timers()
    protocol, transport = connected(timers, Limits(head_s=10.0), ServerState())
    protocol.data_received(b"GET / HTTP/1.1\r\nx: ")
    for _ in range(9):
        timers.pass_time(1)
        protocol.data_received(b"x")
    assert not transport.is_cut
    timers.pass_time(1)
    assert transport.is_cut


def test_each_phase_has_a_time_of_its_own():
    timers = Timers()
    protocol, transport = connected(timers, Limits(head_s=10.0, body_s=20.0, answer_s=30.0), ServerState())
    timers.pass_time(9)
    protocol.data_received(HEAD + b"content-length: 2\r\n\r\n")
    assert protocol.phase == "body"
    timers.pass_time(19)
    protocol.data_received(b"12")
    assert protocol.phase == "answer"
    timers.pass_time(29)
    assert not transport.is_cut
    timers.pass_time(1)
    assert transport.is_cut


def test_when_nobody_waits_for_a_head_a_connection_too_many_is_the_one_that_goes():
    timers, state = Timers(), ServerState()
    held = [connected(timers, Limits(connections=2), state) for _ in range(2)]
    for protocol, _ in held:
        protocol.data_received(HEAD + b"content-length: 2\r\n\r\n")
    _, late = connected(timers, Limits(connections=2), state)
    assert late.is_cut
    assert not any(transport.is_cut for _, transport in held)
    assert len(state.connections) == 2
