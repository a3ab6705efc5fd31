"""Numbers, nesting and bytes in every part of a request, as a person would never send them."""

import asyncio
import json

import pytest

from srwm.demo import create_app
from srwm.demo.requests import MAX_JSON_BYTES

from .asgi import HOST, JSON, call, post, scope_of, send
from .small import CROSS, NAME, small_model


@pytest.fixture(scope="module")
def app():
    return create_app(small_model(), NAME)


@pytest.fixture(scope="module")
def session(app):
    return f"/api/sessions/{post(app, '/api/sessions', {}).content['session']}"


LONG = "9" * 5000
TEXTS = [LONG, "9" * 400, "0" * 5000, "-1", "+1", "1.5", "1e3", "nan", "inf", "0x1", "1_0", "٣", "²", "", " 1", "1\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_number_in_an_address_gets_a_sentence(app, session, text):
    for start, wanted in (("/api/samples/", "from 0 to 1000000"), (f"{session}/moments/", "from 0 to 60")):
        reply = call(app, start + text)
        assert reply.status == (400 if text else 404)
        assert not text or wanted in reply.content["error"]
        assert len(reply.body) < 200


@pytest.mark.parametrize("text", ["01", "1"])
def test_numbers_in_an_address_may_have_zeros_before_them(app, text):
    assert call(app, f"/api/samples/{text}").content == call(app, "/api/samples/1").content


NUMBERS = [
    "1" + "0" * 399,
    "-" + "9" * 400,
    LONG,
    "-" + LONG,
    "1e400",
    "-1e999999",
    "NaN",
    "Infinity",
    "-Infinity",
    "1.5",
]
PLACES = {
    "teach": [
        '{"label": %s, "drawing": {"strokes": [[[0.5, 0.5]]]}}',
        '{"label": 0, "drawing": {"strokes": [[[%s, 0.5]]]}}',
        '{"label": 0, "drawing": %s}',
        '{"label": 0, "drawing": {"strokes": %s}}',
        '{"label": 0, "drawing": {"pixels": %s}}',
    ],
    "forget": ['{"number": %s}'],
    "rename": ['{"label": %s, "name": "x"}', '{"label": 0, "name": %s}'],
    "predict": [
        '{"drawing": {"strokes": [[[0.5, 0.5]]]}, "time": %s, "label": null}',
        '{"drawing": {"strokes": [[[0.5, 0.5]]]}, "time": 0, "label": %s}',
    ],
    "switch": ["%s", '{"more": %s}'],
}
VALUES = {number[:12]: number for number in NUMBERS} | {
    "a long fraction": "0." + "3" * 100_000 + "e999",
    "many digits before the point": "9" * 100_000 + ".0",
    "deep": "[" * 60_000 + "]" * 60_000,
    "half as deep as is read": "[" * 400 + "]" * 400,
    "nearly as deep as is read": "[" * 900 + "]" * 900,
    "deep and open": "[" * 100_000,
    "deep objects": '{"a":' * 900 + "1" + "}" * 900,
    "half of a pair": '"\\ud800"',
    "a null byte": '"\\u0000"',
    "one key twice": '{"strokes": [], "strokes": []}',
    "one long key": '{"%s": 1}' % ("k" * 100_000),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_no_value_anywhere_in_a_body_breaks_the_server(app, session, value):
    for verb, patterns in PLACES.items():
        for pattern in patterns:
            reply = post(app, f"{session}/{verb}", (pattern % value).encode())
            assert reply.status == 400, (verb, pattern)
            assert len(reply.content["error"]) < 260
    assert call(app, session).content["examples"] == []


def test_how_deep_a_body_is_never_breaks_the_server(app, session):
    """Neither where it is read nor where it is quoted in a sentence."""
    for depth in range(1, 1100, 7):
        body = b'{"label": 0, "drawing": {"strokes": [[' + b"[" * depth + b"]" * depth + b"]]}}"
        assert post(app, f"{session}/teach", body).status == 400


def test_many_keys_of_which_the_last_comes_twice_are_refused_at_once(app, session):
    keys = [f'"{number:x}":0' for number in range(40_000)]
    body = "{" + ",".join([*keys, keys[-1]]) + "}"
    assert len(body) < MAX_JSON_BYTES
    reply = post(app, f"{session}/switch", body.encode())
    assert (reply.status, reply.content["error"]) == (
        400,
        "the request is not valid JSON: the key '9c3f' stands in it twice",
    )


@pytest.mark.parametrize(
    "data", [b"\xff", b'{"a": "\xc3"}', b"\xff\xfe{", b"\x00" * 9, b"\xef\xbb\xbf{", '{"a": "é"}'.encode("latin-1")]
)
def test_what_is_no_text_gets_a_sentence(app, session, data):
    reply = post(app, f"{session}/switch", data)
    assert reply.status == 400
    assert "not valid JSON" in reply.content["error"]


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "1.5", "nan", "", "٣", "1,1", "99999999"])
def test_a_length_that_cannot_be_is_refused(app, session, length):
    headers = (HOST, JSON, (b"content-length", length.encode()))
    assert call(app, f"{session}/switch", "POST", headers, b"{}").status == 413


@pytest.mark.parametrize(
    "query", [b"ink=" + b"9" * 5000, b"ink=%ff%fe", b"ink=%00", b"ink", b"ink=dark&ink=red", b"&" * 5000 + b"ink=\xff"]
)
def test_a_query_that_makes_no_sense_gets_a_sentence(app, query):
    reply = post(app, "/api/pictures", b"x", query)
    assert reply.status == 400
    assert "expected one of auto, dark, bright" in reply.content["error"]


@pytest.mark.parametrize("name", ["\x00", "\ud800", "a" * 60_000, "%2e%2e", "..", "é", "\u202e"])
def test_a_session_of_any_name_is_not_found(app, name):
    for rest in ("", "/moments/0"):
        assert call(app, f"/api/sessions/{name}{rest}").status == 404


def test_a_body_that_never_ends_is_refused_when_it_is_too_long(app, session):
    pieces = [b" " * 4096] * (MAX_JSON_BYTES // 4096 + 1)
    reply = asyncio.run(send(app, scope_of(f"{session}/switch", "POST", (HOST, JSON)), *pieces, hangs_up=True))
    assert reply.status == 413


@pytest.mark.parametrize("path", ["/api/pictures", "/api/sessions", "teach"])
def test_who_hangs_up_in_the_middle_leaves_no_trace(app, session, path):
    path = path if path.startswith("/") else f"{session}/{path}"
    scope = scope_of(path, "POST", (HOST, JSON))
    reply = asyncio.run(send(app, scope, b'{"label": 0, ', hangs_up=True))
    assert reply.status == 400
    assert json.loads(reply.body) == {"error": "the request was broken off"}


@pytest.mark.parametrize(
    "point", [[], [0.5], [0.5, 0.5, 0.5], [True, 0.5], [0, False], [None, 0], [[], []], {"x": 0, "y": 0}]
)
def test_a_point_is_two_numbers(app, session, point):
    body = {"label": 0, "drawing": {"strokes": [*CROSS, [point]]}}
    assert f"a point is {point}; expected [x, y]" in post(app, f"{session}/teach", body).content["error"]
