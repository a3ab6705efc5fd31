"""Who may talk to the server: pages that it served itself, and programs on this machine; nobody else's pages."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HOSTS = ("127.0.0.1", "localhost")
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
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = _refusal(Headers(scope=scope))
        if refusal is not None:
            await JSONResponse({"error": refusal}, status_code=403)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)


def _refusal(headers: Headers) -> str | None:
    """Say why a request is not answered, if it is not."""
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) != 1 or hosts[0].lower().partition(":")[0] not in _HOSTS:
        return "this server answers to 127.0.0.1 and localhost alone"
    if len(origins) > 1 or (origins and origins[0].lower() != f"http://{hosts[0].lower()}"):
        return "this server answers its own page alone, not those of other sites"
    # A link on another site may lead here; that shows the page, and tells the other site nothing.
    follows_link = headers.get("sec-fetch-mode") == "navigate"
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not follows_link:
        return "this server answers its own page alone, not those of other sites"
    return None
