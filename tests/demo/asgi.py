"""The application itself, without a server: whatever reaches it, however odd."""

import asyncio
import json
from typing import NamedTuple

HOST = (b"host", b"127.0.0.1:8731")
JSON = (b"content-type", b"application/json")


class Reply(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def content(self):
        return json.loads(self.body)


def scope_of(path, method="GET", headers=(HOST,), query=b""):
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 8731),
        "client": ("127.0.0.1", 50000),
        "method": method,
        "root_path": "",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query,
        "headers": list(headers),
    }


async def send(app, scope, *pieces, hangs_up=False):
    """Send a request whose body comes in pieces; give the reply, or None if there is none."""
    coming = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    coming.append(
        {"type": "http.disconnect"} if hangs_up else {"type": "http.request", "body": b"", "more_body": False}
    )
    sent = []

    async def receive():
        return coming.pop(0) if coming else {"type": "http.disconnect"}

    async def answer(message):
        sent.append(message)

    await app(scope, receive, answer)
    if not sent:
        return None
    assert [message["type"] for message in sent[:1]] == ["http.response.start"]
    body = b"".join(message["body"] for message in sent[1:] if message["type"] == "http.response.body")
    return Reply(sent[0]["status"], dict(sent[0]["headers"]), body)


def call(app, path, method="GET", headers=(HOST,), body=b"", query=b""):
    """Send one request in an event loop of its own."""
    return asyncio.run(send(app, scope_of(path, method, headers, query), body))


def post(app, path, body, query=b""):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return call(app, path, "POST", (HOST, JSON), data, query)
