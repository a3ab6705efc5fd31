"""What the tests of the page share: one server with a small network, and a new session for each test."""

import contextlib
import itertools
import threading
from collections.abc import Iterator

import pytest
import torch

from srwm.demo import create_app, listen
from srwm.demo.serve import make_server

from .small import NAME, Page, small_model
from .small_stream import GATED, STREAM_NAME, StreamPage, small_stream_model


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Tensors here are tiny: threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@contextlib.contextmanager
def serving(app) -> Iterator[int]:
    """Serve an application on a port of its own."""
    listening = listen(0)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()
    listening.close()


def _clock():
    """An hour passes between any two uses of a session: each test's makes place for those of later ones."""
    return itertools.count(0.0, 3600.0).__next__


@pytest.fixture(scope="package")
def port() -> Iterator[int]:
    with serving(create_app(small_model(), NAME, clock=_clock())) as taken:
        yield taken


@pytest.fixture(scope="package")
def stream_port() -> Iterator[int]:
    stream = small_stream_model(**GATED), STREAM_NAME
    with serving(create_app(small_model(), NAME, stream=stream, clock=_clock())) as taken:
        yield taken


@pytest.fixture
def page(port: int) -> Page:
    opened = Page(port)
    opened.open()
    return opened


@pytest.fixture
def stream_page(stream_port: int) -> StreamPage:
    opened = StreamPage(stream_port)
    opened.open()
    return opened
