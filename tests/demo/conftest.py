"""What the tests of the page share: one server with a small network, and a new session for each test."""

import contextlib
import itertools
import threading
from collections.abc import Iterator

import pytest
import torch

from srwm.demo import create_app, listen
from srwm.demo.serve import make_server
from srwm.fewshot import FewShotModel

from .small import NAME, Page, small_model


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Tensors here are tiny: threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@contextlib.contextmanager
def serving(model: FewShotModel) -> Iterator[int]:
    """Serve a model, and give the port."""
    listening = listen(0)
    # An hour passes between any two uses of a session: each test's makes place for those of later ones.
    server = make_server(create_app(model, NAME, clock=itertools.count(0.0, 3600.0).__next__))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="package")
def port() -> Iterator[int]:
    with serving(small_model()) as port:
        yield port


@pytest.fixture
def page(port: int) -> Page:
    opened = Page(port)
    opened.open()
    return opened
