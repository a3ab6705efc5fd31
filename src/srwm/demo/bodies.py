"""Reading what requests bring, up to a bound, and refusing what is not there."""

import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from .requests import MAX_JSON_BYTES, parse_body


def no_session() -> HTTPException:
    """What is raised for a session that is not there."""
    return HTTPException(404, "there is no such session, or it has made place for newer ones; begin anew")


async def read_body(request: Request, most_bytes: int) -> bytes:
    """Read the body of a request, and stop when it is too long."""
    sentence = f"the request is longer than {most_bytes:,} bytes"
    length = request.headers.get("content-length", "0")
    if re.fullmatch("[0-9]{1,16}", length) is None or int(length) > most_bytes:
        raise HTTPException(413, sentence)
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most_bytes:
            raise HTTPException(413, sentence)
    return bytes(data)


async def read_json(request: Request, *keys: str) -> dict[str, Any]:
    """Read a request that is a JSON object with exactly these keys."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # Forms, which other sites can send without asking first, are of other kinds.
    if kind != "application/json":
        raise HTTPException(415, "the request is not marked as application/json")
    return parse_body(await read_body(request, MAX_JSON_BYTES), *keys)
