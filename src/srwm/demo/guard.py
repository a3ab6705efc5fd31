"""Who may talk to the server: pages that it served itself, and programs on this machine; nobody else's pages."""

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HOST = re.compile(r"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
"""The names of this machine that are answered, with any port: it may be another one at the near end of a tunnel."""
_HEADERS = {
    # Nothing from elsewhere, and no script but our files: a name that is a piece of HTML stays a name.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    # What one version served must not meet what another one answers.
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests of foreign pages, and sends headers along that tell browsers to be careful.

    A page elsewhere can send requests to this machine through the browser of whoever looks at it, either openly (its
    `Origin` differs) or with a name of its own that it lets point here (its `Host` differs).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            # There are none here; and pages may open them to anywhere.
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = _refusal(scope)
        if refusal is not None:
            status, sentence = refusal
            await JSONResponse({"error": sentence}, status_code=status)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)


def _refusal(scope: Scope) -> tuple[int, str] | None:
    """Say why a request is not answered, and with which status, if it is not."""
    headers = Headers(scope=scope)
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1:
        return 400, f"the request has {len(hosts)} Host headers; expected one"
    if _HOST.fullmatch(hosts[0]) is None:
        return 403, "this server answers to 127.0.0.1 and localhost alone"
    if not scope["path"].startswith("/"):
        # A whole URL would name a host of its own, beside that of the header.
        return 400, "the request's address does not begin with a slash; expected a path on this server"
    foreign = 403, "this server answers its own page alone, not those of other sites"
    if len(origins) > 1 or (origins and origins[0].lower() != f"http://{hosts[0].lower()}"):
        return foreign
    # A link on another site may lead here; that shows the page, and tells the other site nothing.
    follows_link = (
        scope["path"] == "/" and scope["method"] == "GET" and headers.getlist("sec-fetch-mode") == ["navigate"]
    )
    if not {"same-origin", "none"}.issuperset(headers.getlist("sec-fetch-site")) and not follows_link:
        return foreign
    return None
