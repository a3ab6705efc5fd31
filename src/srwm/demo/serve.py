"""The server: on this machine alone, until Ctrl-C."""

import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from srwm.errors import InputError, RunError

from .protocol import BoundedConfig, Limits

HOST = "127.0.0.1"
PORT = 8731
"""Where the page is when no other place is asked for."""
_GRACE_S = 2
"""How long requests may take to end after Ctrl-C."""


def listen(port: int) -> socket.socket:
    """Take a port of this machine that no other machine can reach.

    Args:
        port: 0 for any that is free.

    Raises:
        InputError: if it is no port.
        RunError: if it cannot be had.
    """
    if not 0 <= port <= 65535:
        raise InputError(f"port {port}; expected 0 to 65535, 0 for any that is free")
    # asyncio sends at once only on sockets that say that they are TCP; on others, answers wait for 40 ms.
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # Without this, a page that was just left would hold the port for a minute.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HOST, port))
        opened.listen()
    except OSError as error:
        opened.close()
        reason = error.strerror or str(error)
        raise RunError(
            f"port {port} cannot be had ({reason}); end what uses it, or choose another with --port, 0 for any"
        ) from error
    return opened


def url_of(listening: socket.socket) -> str:
    """The address of the page."""
    return f"http://{HOST}:{listening.getsockname()[1]}/"


def make_server(app: ASGIApp, limits: Limits | None = None) -> uvicorn.Server:
    """Make a server; `run` it with what `listen` gave, and set its `should_exit` to end it."""
    config = BoundedConfig(
        app,
        limits or Limits(),
        ws="none",
        lifespan="off",
        access_log=False,
        # Not the warnings: whoever sends what is no HTTP would fill the terminal with them.
        log_level="error",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    return uvicorn.Server(config)


def serve(app: ASGIApp, listening: socket.socket, *, browser: bool, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        app: what `create_app` gave.
        listening: what `listen` gave.
        browser: whether to open the page in the user's browser, where there is one to be seen.
        ready: called with the page's address; requests that come from now on are answered.

    Raises:
        KeyboardInterrupt: after Ctrl-C, when all is closed; a server that was just about to end returns instead.
    """
    url = url_of(listening)
    ready(url)
    if browser and has_screen():
        # It may take its time; the page must be served meanwhile.
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    make_server(app).run(sockets=[listening])


def has_screen() -> bool:
    """Whether a browser would open a window; without one, it would take the terminal over."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
