"""The interface that the page talks to, over a real server."""

import base64
import http.client
import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from srwm.demo.drawing import LOOKS, MAX_PIXELS, draw_image
from srwm.demo.requests import MAX_JSON_BYTES, MAX_NAME, MAX_PICTURE_BYTES, MAX_POINTS

from .small import CROSS, HOOK, NAME, RING, SHAPE, SIZE, STROKES, WAVE, WAYS, Page


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def teach_all(page):
    return [page.teach(label) for label in range(WAYS)][-1]


def test_the_model_is_described(page):
    model = page.get("/api/model")
    assert (model["name"], model["ways"], model["image_size"], model["channels"]) == (NAME, WAYS, SIZE, 1)
    assert model["layers"] == [{"heads": 2, "rows": 8, "columns": [8, 8, 8, 4], "keeps_least": None}] * 2
    assert model["pen"] == LOOKS["strokes"].pen


def test_a_new_session_is_empty(port):
    view = Page(port).open()
    assert (view["examples"], view["tasks"]) == ([], [["A", "B", "C", "D", "E"]])
    assert view["moments"] == [[{"moved": 0, "peak": 0}] * 2]
    assert [layer["rates"] for layer in view["layers"]] == [None, None]


def test_five_are_taught_and_a_sixth_is_answered(page):
    view = teach_all(page)
    assert [(each["number"], each["label"]) for each in view["examples"]] == [(i + 1, i) for i in range(WAYS)]
    assert [moment[0]["moved"] > 0 for moment in view["moments"]] == [False] + [True] * WAYS
    answer = page.predict(WAVE)
    for key in ("on", "off"):
        assert len(answer[key]) == WAYS
        assert sum(answer[key]) == pytest.approx(1, abs=1e-3)
    assert answer["on"] != answer["off"]


def test_what_the_network_sees_is_sent_back(page):
    seen = base64.b64decode(page.predict(HOOK)["pixels"])
    assert seen == draw_image(HOOK, LOOKS["strokes"], SHAPE).tobytes()
    assert base64.b64decode(page.teach(0, HOOK)["examples"][0]["pixels"]) == seen


def test_changes_are_bytes_and_rates_lie_between_0_and_1(page):
    teach_all(page)
    for layer in page.predict(WAVE)["layers"]:
        change = np.frombuffer(base64.b64decode(layer["change"]), np.int8)
        assert len(change) == 2 * 8 * 28
        assert np.abs(change).max() == 127
        assert layer["peak"] > 0
        rates = np.array(layer["rates"])
        assert rates.shape == (2, 4)
        assert ((rates > 0) & (rates < 1)).all()


def test_back_in_time_is_exact(page):
    answers, moments = [], []
    for label in range(WAYS):
        answers.append(page.predict(WAVE))
        moments.append(page.get(f"{page.session}/moments/{label}"))
        page.teach(label)
    assert [page.predict(WAVE, time=time) for time in range(WAYS)] == answers
    assert [page.get(f"{page.session}/moments/{time}") for time in range(WAYS)] == moments
    assert len({str(answer["on"]) for answer in answers}) == WAYS


def test_turned_off_it_never_learns(page):
    before = page.predict(WAVE)
    teach_all(page)
    assert page.predict(WAVE)["off"] == before["off"] == before["on"]


def test_forgetting_equals_learning_anew_from_the_others(page, port):
    teach_all(page)
    view = page.change("forget", number=2)
    other = Page(port)
    other.open()
    for label in (0, 2, 3, 4):
        other.teach(label)
    assert [each["label"] for each in view["examples"]] == [0, 2, 3, 4]
    assert page.predict(WAVE) == other.predict(WAVE)
    assert view["moments"] == other.get(other.session)["moments"]


def test_switching_the_task_goes_on_with_the_same_network(page):
    before = teach_all(page)
    view = page.change("switch")
    assert view["tasks"] == [["A", "B", "C", "D", "E"], ["F", "G", "H", "I", "J"]]
    assert view["layers"] == before["layers"]
    after = page.teach(0, WAVE)
    assert after["examples"][-1]["task"] == 1
    assert after["layers"] != before["layers"]
    assert len(after["examples"]) == WAYS + 1


def test_a_reset_is_a_new_beginning(page):
    fresh = page.get(page.session)
    answer = page.predict(WAVE)
    teach_all(page)
    page.change("switch")
    assert page.change("reset") == fresh
    assert page.predict(WAVE) == answer


def test_sessions_do_not_know_of_each_other(page, port):
    other = Page(port)
    other.open()
    teach_all(page)
    assert other.get(other.session)["examples"] == []


def test_a_picture_becomes_pixels_that_can_be_taught(page):
    ink = draw_image(HOOK, LOOKS["strokes"], SHAPE)[0]
    found = page.post("/api/pictures", png(255 - ink))
    assert found["inverted"] is True
    assert base64.b64decode(found["pixels"]) == ink.tobytes()
    taught = page.change("teach", label=0, drawing={"pixels": found["pixels"]})
    page.change("reset")
    assert page.teach(0, HOOK)["layers"] == taught["layers"]


def test_the_ink_of_a_picture_can_be_named(page):
    ink = png(draw_image(HOOK, LOOKS["strokes"], SHAPE)[0])
    assert page.post("/api/pictures?ink=bright", ink)["inverted"] is False
    assert page.post("/api/pictures?ink=dark", ink)["inverted"] is True
    status, _, content = page.send("POST", "/api/pictures?ink=red", ink)
    assert (status, content["error"]) == (400, "ink is 'red'; expected one of auto, dark, bright")


def test_samples_are_two_drawings_of_each_class(page):
    pairs = page.get("/api/samples/3")
    assert [len(pair) for pair in pairs] == [2] * WAYS
    assert len({pixels for pair in pairs for pixels in pair}) == 2 * WAYS
    assert page.get("/api/samples/3") == pairs != page.get("/api/samples/4")
    page.change("teach", label=0, drawing={"pixels": pairs[0][0]})


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "&amp;", "字", "'\"`", "a b"])
def test_names_come_back_as_they_were_given_and_marked_as_json(page, name):
    status, headers, view = page.send(
        "POST", f"{page.session}/rename", {"label": 1, "name": f" {name[:MAX_NAME]} "[:MAX_NAME]}
    )
    assert status == 200
    assert view["tasks"][0][1] == name[: MAX_NAME - 1].strip()
    assert headers["content-type"] == "application/json"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["", "   ", "a" * (MAX_NAME + 1), "a\nb", "\u202e", 5, None, ["a"]])
def test_names_that_cannot_be_shown_are_refused(page, name):
    status, sentence = page.refused("rename", {"label": 1, "name": name})
    assert status == 400
    assert f"expected 1 to {MAX_NAME} letters" in sentence


@pytest.mark.parametrize(
    ("verb", "body", "words"),
    [
        ("teach", {"label": 5, "drawing": {"strokes": CROSS}}, "label is 5; expected a whole number from 0 to 4"),
        ("teach", {"label": True, "drawing": {"strokes": CROSS}}, "label is True"),
        ("teach", {"label": 1.0, "drawing": {"strokes": CROSS}}, "label is 1.0"),
        ("teach", {"label": 0}, "lacks the key 'drawing'"),
        ("teach", {"label": 0, "drawing": {"strokes": CROSS}, "more": 1}, "has the key 'more'"),
        ("teach", {"label": 0, "drawing": {"strokes": []}}, "the drawing is empty"),
        ("teach", {"label": 0, "drawing": {"strokes": [[], []]}}, "the drawing is empty"),
        ("teach", {"label": 0, "drawing": {"strokes": [[[0.5]]]}}, "a point is [0.5]"),
        ("teach", {"label": 0, "drawing": {"strokes": [[[0.5, 1.5]]]}}, "both from 0 to 1"),
        ("teach", {"label": 0, "drawing": {"strokes": [[["0", 0]]]}}, "both from 0 to 1"),
        ("teach", {"label": 0, "drawing": {"strokes": "x" * 9}}, "not a list of lists"),
        ("teach", {"label": 0, "drawing": {"strokes": [[[0.5, 0.5]] * (MAX_POINTS + 1)]}}, "at most 8000 are taken"),
        ("teach", {"label": 0, "drawing": {"pixels": "AAAA"}}, "not 400 bytes (1 x 20 x 20)"),
        ("teach", {"label": 0, "drawing": {"pixels": "ä!"}}, "not 400 bytes"),
        ("teach", {"label": 0, "drawing": {"pixels": "AAAA", "strokes": []}}, "has the key 'strokes'"),
        ("teach", {"label": 0, "drawing": 7}, "the drawing is 7"),
        ("forget", {"number": 1}, "there is no example 1"),
        ("forget", {"number": -1}, "expected a whole number"),
        ("predict", {"drawing": {"strokes": CROSS}, "time": 1, "label": None}, "expected 0 to 0"),
        ("predict", {"drawing": {"strokes": CROSS}, "time": 0, "label": "A"}, "label is 'A'"),
        ("switch", {"x": 1}, "expected nothing"),
        ("reset", b"[]", "not valid JSON: it does not hold an object"),
        ("reset", b"{", "not valid JSON"),
        ("reset", b"\xff\xfe", "not valid JSON"),
        ("reset", b'{"a": NaN}', "not valid JSON"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(page, verb, body, words):
    headers = {"content-type": "application/json"}
    status, _, content = page.send("POST", f"{page.session}/{verb}", body, headers)
    assert status == 400
    assert words in content["error"]
    assert page.get(page.session)["examples"] == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["strokes", "pixels", "x"]), inner),
    max_leaves=12,
)


@given(label=JSON, drawing=JSON)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_nonsense_breaks_the_server(page, label, drawing):
    status, _, content = page.send("POST", f"{page.session}/teach", {"label": label, "drawing": drawing})
    assert status == 400
    assert content["error"]


@given(
    data=st.binary(max_size=300),
    head=st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"BM"]),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_broken_picture_breaks_the_server(page, data, head):
    status, _, content = page.send("POST", "/api/pictures", head + data)
    assert status == 400
    assert "the picture is not an image that can be read" in content["error"]


def test_a_session_that_is_not_there_is_not_found(page):
    for path in ("/api/sessions/none", "/api/sessions/none/moments/0"):
        assert page.send("GET", path)[0] == 404
    status, _, content = page.send("POST", "/api/sessions/none/reset", {})
    assert status == 404
    assert "begin anew" in content["error"]


def test_other_methods_and_addresses_are_refused(page):
    assert page.send("GET", f"{page.session}/teach")[0] == 405
    assert page.send("DELETE", page.session)[0] == 405
    assert page.send("GET", "/api/nothing")[0] == 404
    assert page.send("GET", f"{page.session}/moments/99")[0] == 400
    assert page.send("GET", "/api/samples/99999999")[0] == 400


def test_the_largest_drawing_fits(page):
    points = [[round(i / MAX_POINTS, 4), 0.1234] for i in range(MAX_POINTS)]
    assert page.change("teach", label=0, drawing={"strokes": [points]})["examples"]


def test_bodies_that_are_too_large_are_refused_whether_or_not_they_say_so(page):
    large = b" " * (MAX_JSON_BYTES + 1)
    status, sentence = page.refused("teach", {"label": 0, "drawing": large.decode()})
    assert (status, sentence) == (413, f"the request is longer than {MAX_JSON_BYTES:,} bytes")
    pieces = iter([large[: MAX_JSON_BYTES // 2]] * 3)
    headers = {"content-type": "application/json", "transfer-encoding": "chunked"}
    connection = http.client.HTTPConnection("127.0.0.1", page.port)
    connection.request("POST", f"{page.session}/teach", pieces, headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_pictures_that_are_too_large_are_refused_before_they_are_sent(page):
    connection = http.client.HTTPConnection("127.0.0.1", page.port)
    connection.putrequest("POST", "/api/pictures")
    connection.putheader("content-length", str(MAX_PICTURE_BYTES + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    ("side", "sentence"),
    [
        (
            9000,
            f"the picture is 9000 x 9000 pixels; expected at most 10000 a side and {MAX_PIXELS} in all: "
            "make it smaller first",
        ),
        (60000, "the picture is not an image that can be read; expected PNG, JPEG, WEBP, BMP, GIF"),
    ],
)
def test_a_picture_that_unpacks_to_gigabytes_is_refused(page, side, sentence):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(9999))) + chunk(b"IEND", b"")
    status, _, content = page.send("POST", "/api/pictures", bomb)
    assert (status, content["error"]) == (400, sentence)


def test_every_stroke_counts(page):
    assert page.predict(CROSS)["pixels"] != page.predict(CROSS[:1])["pixels"]
    assert page.predict(RING)["on"] != page.predict(STROKES[2])["on"]
