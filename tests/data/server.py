"""A web server on this machine that answers as a test tells it to."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Gives one answer after the other; the last one again and again.

    An answer is a function of the handler, which sends something.
    """

    def __init__(self, *answers):
        self.answers = list(answers)
        self.ranges = []
        """The `Range` of each request, None where there was none."""
        self.over = threading.Event()

    def __enter__(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.ranges.append(self.headers.get("Range"))
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                with contextlib.suppress(ConnectionError):  # The client may hang up.
                    answer(self)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.outer = self
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def url(self, name):
        return f"http://127.0.0.1:{self.http.server_port}/{name}"


def send(handler, content, *, status=200, headers=None, claim=None):
    """Send a whole answer; `claim` is the size it claims to have, "none" for no claim."""
    handler.send_response(status)
    for name, value in {"Content-Type": "application/zip", **(headers or {})}.items():
        handler.send_header(name, value)
    if claim != "none":
        handler.send_header("Content-Length", str(len(content) if claim is None else claim))
    handler.end_headers()
    handler.wfile.write(content)
    handler.wfile.flush()


def whole(content, **options):
    """Answer with the file, or with the part of it that was asked for."""

    def answer(handler):
        start = int(handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        part = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        send(handler, content[start:], status=206 if start else 200, headers=part, **options)

    return answer


def cut(content, size):
    """Answer like `whole`, but hang up after `size` bytes."""

    def answer(handler):
        start = int(handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        part = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        left = content[start:]
        send(handler, left[:size], status=206 if start else 200, headers=part, claim=len(left))

    return answer


def stall(content, size):
    """Answer with `size` bytes of the file, then with silence."""

    def answer(handler):
        send(handler, content[:size], claim=len(content))
        handler.server.outer.over.wait(10)

    return answer


def plain(content, **options):
    """Answer with these bytes, whatever was asked for."""
    return lambda handler: send(handler, content, **options)
