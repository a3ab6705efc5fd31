"""The interface of the third tab, over a real server, and what it refuses."""

import base64

import numpy as np
import pytest

from srwm.demo import create_app
from srwm.demo.tracking_session import MAX_SYMBOLS, SHOWN
from srwm.errors import InputError

from .asgi import HOST, call, post
from .conftest import serving
from .small import NAME, small_model
from .small_tracking import NAMES, TrackingPage, small_tracker, small_tracking
from .test_numbers import VALUES


@pytest.fixture(scope="module")
def tracking_port():
    with serving(create_app(small_model(), NAME, tracking=small_tracking(), clock=lambda: 0.0)) as port:
        yield port


@pytest.fixture
def tracking_page(tracking_port):
    opened = TrackingPage(tracking_port)
    opened.open()
    return opened


def test_where_there_are_no_networks_of_languages_there_is_no_tab(page):
    assert page.get("/api/tracking") == {"tracking": None}
    assert page.send("POST", "/api/tracking/sessions", {})[0] == 404


def test_the_networks_and_what_is_asked_of_them_are_described(tracking_page):
    about = tracking_page.get("/api/tracking")["tracking"]
    assert (about["title"], about["symbols"], about["answers"]) == (
        "is the number of ones so far odd?",
        ["0", "1"],
        ["even", "odd"],
    )
    assert (about["trained_length"], about["limits"]) == (50, {"symbols": MAX_SYMBOLS})
    assert [(each["name"], each["title"], len(each["layers"])) for each in about["networks"]] == [
        (NAMES[0], "SRWM", 2),
        (NAMES[1], "LSTM", 0),
    ]
    assert about["networks"][0]["layers"][0] == {"heads": 2, "rows": 4, "columns": [4, 4, 4, 4], "keeps_least": None}


def test_answers_without_names_are_called_by_their_numbers():
    models = [(small_tracker(task="sum-mod-3"), "some")]
    about = call(create_app(small_model(), NAME, tracking=models), "/api/tracking").content["tracking"]
    assert about["answers"] == ["0", "1", "2"]


def test_what_was_read_is_shown_with_the_truth_and_the_answers(tracking_page):
    view = tracking_page.read(*[1, 0, 1] * 10)
    assert (view["steps"], view["truth"], len(view["shown"])) == (30, 0, SHOWN)
    for each in view["shown"]:
        assert each["truth"] == each["answers"][0] or each["place"] >= view["first_errors"][0]
        assert [sum(row) for row in each["probabilities"]] == pytest.approx([1, 1], abs=1e-3)
    assert [each["place"] for each in view["shown"]] == list(range(31 - SHOWN, 31))
    assert [len(layers) for layers in view["layers"]] == [2, 0]
    for layer in view["layers"][0]:
        assert np.abs(np.frombuffer(base64.b64decode(layer["change"]), np.int8)).max() == 127
        assert layer["moved"] > 0
        assert np.array(layer["rates"]).shape == (2, 4)
    assert tracking_page.get(tracking_page.session) == view


def test_a_symbol_can_be_replaced_and_all_can_begin_anew(tracking_page, tracking_port):
    tracking_page.read(1, 1, 0)
    view = tracking_page.change("replace", place=2, symbol=0)
    assert [(each["symbol"], each["truth"]) for each in view["shown"]] == [(1, 1), (0, 1), (0, 1)]
    fresh = TrackingPage(tracking_port).open()
    del fresh["session"]
    assert tracking_page.change("reset") == fresh
    assert fresh["layers"][0][0]["rates"] is None


@pytest.mark.parametrize(
    ("verb", "body", "words"),
    [
        ("read", {"symbols": []}, f"the symbols are not a list of 1 to {MAX_SYMBOLS} of them"),
        ("read", {"symbols": [0] * (MAX_SYMBOLS + 1)}, "the symbols are not a list of"),
        ("read", {"symbols": "01"}, "the symbols are not a list of"),
        ("read", {"symbols": [0, 2]}, "a symbol is 2; expected a whole number from 0 to 1"),
        ("read", {"symbols": [True]}, "a symbol is True"),
        ("read", {}, "lacks the key 'symbols'"),
        ("replace", {"place": 1, "symbol": 0}, "place 1 cannot be changed; expected one that is shown: none yet"),
        ("replace", {"place": 0, "symbol": 0}, "place is 0; expected a whole number from 1"),
        ("replace", {"place": 1, "symbol": -1}, "symbol is -1"),
        ("reset", {"x": 1}, "expected nothing"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(tracking_page, verb, body, words):
    status, sentence = tracking_page.refused(verb, body)
    assert status == 400
    assert words in sentence
    assert tracking_page.get(tracking_page.session)["steps"] == 0


@pytest.fixture(scope="module")
def app():
    return create_app(small_model(), NAME, tracking=small_tracking(), clock=lambda: 0.0)


@pytest.fixture(scope="module")
def session(app):
    return f"/api/tracking/sessions/{post(app, '/api/tracking/sessions', {}).content['session']}"


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_no_value_anywhere_in_a_body_breaks_the_server(app, session, value):
    for path, pattern in (
        (f"{session}/read", '{"symbols": %s}'),
        (f"{session}/read", '{"symbols": [0, %s]}'),
        (f"{session}/replace", '{"place": %s, "symbol": 0}'),
        (f"{session}/replace", '{"place": 1, "symbol": %s}'),
        (f"{session}/reset", "%s"),
        ("/api/tracking/sessions", "%s"),
    ):
        reply = post(app, path, (pattern % value).encode())
        assert reply.status == 400, path
        assert len(reply.content["error"]) < 260
    assert call(app, session).content["steps"] == 0


def test_other_kinds_methods_and_names_are_refused(app, session):
    assert call(app, f"{session}/read", "POST", (HOST,), b'{"symbols": [1]}').status == 415
    assert call(app, f"{session}/read").status == 405
    assert post(app, "/api/tracking/sessions/none/read", {"symbols": [1]}).status == 404
    assert "begin anew" in call(app, "/api/tracking/sessions/none").content["error"]


def test_models_that_do_not_go_together_are_refused_at_once():
    with pytest.raises(InputError, match="expected one task"):
        create_app(small_model(), NAME, tracking=[(small_tracker(task="s3"), "a"), (small_tracker(), "b")])
