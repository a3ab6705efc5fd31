"""The page that needs no installation, in a real browser: its answers are Python's, and nothing leaves its site."""

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import srwm.demo
from deploy.small import as_installed
from srwm.demo.drawing import LOOKS, draw_image, read_picture
from srwm.demo.learner import DrawingLearner
from srwm.demo.samples import sample_images
from srwm.demo.session import Session
from srwm.demo.static_page import RUNTIME_FILES, static_page
from srwm.demo.stream_learner import StreamLearner
from srwm.demo.stream_session import StreamSession
from srwm.demo.stream_views import stream_view
from srwm.demo.tracking_learner import TrackingLearner
from srwm.demo.tracking_session import SHOWN, Bins, TrackingSession
from srwm.demo.tracking_views import tracking_view
from srwm.languages import load_tracker

from .small import CROSS, HOOK, NAME, RING, SHAPE, STROKES, WAVE, WAYS, small_model
from .small_stream import GATED, STREAM_NAME, small_stream_model
from .static_site import browser_runtime, call, handing_out, write_page

pytest.importorskip("selenium", reason="runs where selenium is installed")
from .browser import CHROMIUM, DRIVER, View, open_browser

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="runs where Chromium and chromedriver are installed"),
    pytest.mark.skipif(
        not browser_runtime.is_fetched(), reason="runs where `python docs/tools/browser_runtime.py` had its way"
    ),
]
PARITY = ("parity-srwm", "parity-deltanet")
"""The models that come with srwm: that one of them follows parity is what the page is about."""
TRACKING_FILES = ("tracking-0.bin", "tracking-1.bin")
CLOSE = 1e-4
"""A tenth of what is promised: float32 in WebAssembly and in PyTorch, over a few steps of small networks."""


@pytest.fixture(scope="module")
def files():
    with as_installed():
        stream = small_stream_model(**GATED), STREAM_NAME
        return static_page(
            small_model(source="omniglot"),
            NAME,
            browser_runtime.read(),
            stream=stream,
            tracking=[(load_tracker(name), name) for name in PARITY],
            home="../about.html",
        )


@pytest.fixture(scope="module")
def address(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("site")
    write_page(folder / "try", files)
    with handing_out(folder) as root:
        yield f"{root}try/"


@pytest.fixture(scope="module")
def browser():
    opened = open_browser(performance=True)
    yield opened
    opened.quit()


@pytest.fixture
def view(browser, address):
    opened = View(browser, address)
    opened.open()
    yield opened
    assert opened.errors() == []


def bytes_of(text, dtype=np.uint8):
    return np.frombuffer(base64.b64decode(text), dtype)


def assert_same_layers(theirs, ours):
    for layer, moment in zip(theirs, ours, strict=True):
        assert layer["peak"] == pytest.approx(float(moment.change.abs().max()), rel=CLOSE, abs=1e-9)
        change = bytes_of(layer["change"], np.int8) * layer["peak"] / 127
        step = layer["peak"] / 127
        assert np.abs(change - moment.change.flatten().numpy()).max() <= 0.51 * step + CLOSE
        for name, wanted in (("rates", moment.rates), ("kept", moment.kept)):
            if wanted is None:
                assert layer[name] is None
            else:
                assert np.allclose(layer[name], wanted, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("number", [0, 1])
def test_taught_tasks_have_the_answers_of_python(browser, view, number):
    session = Session(DrawingLearner(small_model(source="omniglot")))
    pairs = sample_images(number, WAYS, SHAPE)
    theirs = call(browser, "samples", number)
    assert all(np.array_equal(bytes_of(a), one.ravel()) for (a, _), (one, _) in zip(theirs, pairs, strict=True))
    call(browser, "drawings", method="open")
    for label, strokes in enumerate(STROKES[:2]):
        session.teach(label, draw_image(strokes, LOOKS["omniglot"], SHAPE))
        told = call(
            browser, "drawings", "here", "teach", {"label": label, "drawing": {"strokes": strokes}}, method="ask"
        )
    for label, ((image, _), (text, _)) in enumerate(zip(pairs, theirs, strict=True)):
        session.teach(label, image)
        told = call(browser, "drawings", "here", "teach", {"label": label, "drawing": {"pixels": text}}, method="ask")
    assert [example["number"] for example in told["examples"]] == [example.number for example in session.examples]
    assert_same_layers(told["layers"], session.moments[-1].layers)
    for time, label, (_, asked), (_, text) in zip(
        (0, 3, 7, 7, 7), (None, None, None, 2, 0), pairs, theirs, strict=True
    ):
        answer, moment = session.look(asked, time, label)
        body = {"drawing": {"pixels": text}, "time": time, "label": label}
        said = call(browser, "drawings", "here", "predict", body, method="ask")
        assert np.allclose(said["on"], answer.on, atol=CLOSE, rtol=0)
        assert np.allclose(said["off"], answer.off, atol=CLOSE, rtol=0)
        assert_same_layers(said["layers"], moment.layers)


def test_forgetting_is_exact_and_the_rest_of_a_session_is_as_with_a_server(browser, view):
    def ask(verb, **body):
        return call(browser, "drawings", "here", verb, body, method="ask")

    call(browser, "drawings", method="open")
    for label in (0, 1, 2):
        ask("teach", label=label, drawing={"strokes": STROKES[label]})
    without = ask("forget", number=2)
    ask("reset")
    for label in (0, 2):
        told = ask("teach", label=label, drawing={"strokes": STROKES[label]})
    assert told["layers"] == without["layers"]
    assert told["moments"] == without["moments"]
    assert ask("switch")["tasks"] == [list("ABCDE"), list("FGHIJ")]
    assert ask("rename", label=1, name=" it ")["tasks"][1][1] == "it"
    with pytest.raises(RuntimeError, match="there is no example 9"):
        ask("forget", number=9)


def test_a_stream_is_lived_as_in_python(browser, view):
    session = StreamSession(StreamLearner(small_stream_model(**GATED)), seed=3)
    call(browser, "streams", {"seed": 3}, method="open")
    call(browser, "streams", "here", "task_length", {"images": 15}, method="ask")
    session.set_task_length(15)
    for count in (1, 17):
        session.live(count)
        theirs, ours = call(browser, "streams", "here", "steps", {"count": count}, method="ask"), stream_view(session)
        assert_same_layers(theirs["layers"], session.layers)
        for one, other in zip(theirs.pop("shown"), ours.pop("shown"), strict=True):
            assert np.allclose(one.pop("probabilities"), other.pop("probabilities"), atol=CLOSE, rtol=0)
            assert one == other
        for each in (theirs, ours):
            norms = [row.pop() for row in each["bins"]["list"]]
            assert norms == pytest.approx([step.norm for step in session.history.bins], rel=CLOSE)
            assert each.pop("norm") == pytest.approx(session.norm, rel=CLOSE)
            del each["layers"]
        assert theirs == ours


def test_a_thousand_bits_have_the_answers_of_python_and_those_of_the_srwm_are_right(browser, view):
    bits = np.random.Generator(np.random.Philox(key=1)).integers(2, size=1000).tolist()
    with torch.no_grad():
        scores = [load_tracker(name)(torch.tensor([bits]))[0][0] for name in PARITY]
    ours = torch.stack([each.softmax(dim=-1) for each in scores], dim=1).numpy()
    truths, bins = np.cumsum(bits) % 2, Bins(1, ())
    for right in (ours.argmax(axis=-1) == truths[:, None]).tolist():
        bins = bins.add(right)
    call(browser, "trackings", {}, method="open")
    for start in range(0, len(bits), SHOWN):
        piece = bits[start : start + SHOWN]
        theirs = call(browser, "trackings", "here", "read", {"symbols": piece}, method="ask")
        said = [each["probabilities"] for each in theirs["shown"][-len(piece) :]]
        assert np.allclose(said, ours[start : start + SHOWN], atol=CLOSE, rtol=0)
    assert theirs["right"][0] == theirs["steps"] == 1000
    assert theirs["right"][1] < 600
    assert theirs["bins"] == {"width": 16, "list": [list(stretch) for stretch in bins.stretches]}


def test_a_sequence_is_read_as_with_a_server(browser, view):
    session = TrackingSession(TrackingLearner([(load_tracker(name), name) for name in PARITY]))
    assert_same_tracking(call(browser, "trackings", {}, method="open"), session)
    for symbols in ([1], [0, 1, 1] * 12):
        session.read(symbols)
        told = call(browser, "trackings", "here", "read", {"symbols": symbols}, method="ask")
        assert_same_tracking(told, session)
    for place in (37, 37 - SHOWN + 1):
        session.replace(place, 0)
        told = call(browser, "trackings", "here", "replace", {"place": place, "symbol": 0}, method="ask")
        assert_same_tracking(told, session)


def assert_same_tracking(theirs, session):
    ours = tracking_view(session)
    theirs.pop("session", None)
    for layers, steps in zip(theirs.pop("layers"), session.layers, strict=True):
        assert_same_layers(layers, steps)
    del ours["layers"]
    for each in (*theirs["shown"], *ours["shown"]):
        del each["probabilities"]
    assert theirs == ours


def test_a_symbol_that_is_no_longer_shown_is_refused(browser, view):
    call(browser, "trackings", {}, method="open")
    call(browser, "trackings", "here", "read", {"symbols": [1] * (SHOWN + 1)}, method="ask")
    with pytest.raises(RuntimeError, match="place 1 cannot be changed; expected one that is shown"):
        call(browser, "trackings", "here", "replace", {"place": 1, "symbol": 0}, method="ask")


def test_a_picture_from_disk_is_read_as_python_reads_it(view, tmp_path):
    ink = draw_image(HOOK, LOOKS["strokes"], (1, 97, 97))[0]
    picture = Image.fromarray(255 - ink).resize((120, 90)).convert("RGB")
    picture.save(tmp_path / "hook.png")
    view.box(1).find_element("css selector", "input[type=file]").send_keys(str(tmp_path / "hook.png"))
    teach = view.box(1).find_element("css selector", ".teach")
    view.wait(teach.is_enabled)
    teach.click()
    view.wait(lambda: view.texts(".thumb-name") == ["B"])
    file = io.BytesIO()
    picture.save(file, "PNG")
    ours, _ = read_picture(file.getvalue(), LOOKS["omniglot"], SHAPE)
    (example,) = json.loads(view.script("return sessionStorage.taught"))["examples"]
    assert np.array_equal(bytes_of(example["pixels"]), ours.ravel())
    (tmp_path / "broken.png").write_bytes(b"no picture")
    view.find("#question-file").send_keys(str(tmp_path / "broken.png"))
    view.wait(lambda: "not an image that can be read" in view.find("#message").text)


def test_a_person_teaches_asks_goes_back_and_forgets(view):
    assert view.find("#about").text.startswith(NAME)
    start = view.maps()
    for label, strokes in enumerate(STROKES):
        view.teach(label, strokes)
    view.ask(WAVE)
    view.wait(lambda: view.shares("on")[0] != "")
    assert view.find("#best-on").text in "ABCDE"
    assert view.maps() != start
    assert "\N{EN DASH}" not in view.texts("#layers .rate .number")
    view.browser.refresh()
    view.wait(lambda: view.script("return document.body.dataset.ready"))
    view.wait(lambda: view.texts(".thumb-name") == ["A", "B", "C", "D", "E"])
    view.all(".drop")[1].click()
    view.wait(lambda: view.texts(".thumb-name") == ["A", "C", "D", "E"])
    view.find("#reset").click()
    view.wait(lambda: view.all(".strip li") == [])


def test_a_person_watches_a_stream(view):
    view.find("#tab-stream").click()
    view.wait(lambda: view.script("return document.body.dataset.streamReady"))
    for number in ("1", "2"):
        view.find("#step").click()
        view.wait(lambda number=number: view.find("#lived").text == number)
    assert view.find("#verdict").text.startswith("It says")
    view.browser.refresh()
    view.wait(lambda: view.find("#lived").text == "0")


def test_a_person_types_bits_and_lets_them_run(view):
    view.find("#tab-tracking").click()
    view.wait(lambda: view.script("return document.body.dataset.trackingReady"))
    start = view.maps()
    for bit, answer in ((1, "odd"), (1, "even"), (0, "even")):
        view.all("#symbols button")[bit].click()
        view.wait(lambda answer=answer: view.find("#tracking-truth").text == f"the truth: {answer}")
        assert view.texts("#trackers tbody td")[0].startswith(f"✓ {answer}, ")
    assert view.maps() != start
    view.find("#tracking-play").click()
    view.wait(lambda: int(view.find("#read-symbols").text) > 4)
    view.find("#tracking-play").click()
    view.browser.refresh()
    view.wait(lambda: view.find("#read-symbols").text == "0")


def test_it_fits_on_a_phone_and_takes_fingers(view):
    view.open(width=360, height=740)
    assert view.script("return document.documentElement.scrollWidth") == 360
    view.teach(0, CROSS, kind="touch")
    view.ask(RING, kind="touch")
    view.wait(lambda: view.shares("on")[0] != "")


def test_no_request_leaves_the_site(browser, address, tmp_path):
    browser.get_log("performance")
    view = View(browser, address)
    view.open()
    view.teach(0, CROSS)
    view.ask(RING)
    view.find("#tab-stream").click()
    view.wait(lambda: view.script("return document.body.dataset.streamReady"))
    view.find("#step").click()
    view.wait(lambda: view.find("#lived").text == "1")
    view.find("#tab-tracking").click()
    view.wait(lambda: view.script("return document.body.dataset.trackingReady"))
    view.all("#symbols button")[1].click()
    view.wait(lambda: view.find("#read-symbols").text == "1")
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
    assert {f"{address}{name}" for name in ("", "teach.bin", "stream.bin", *TRACKING_FILES, *RUNTIME_FILES)} <= asked
    assert [url for url in asked if not url.startswith(address)] == []
    with handing_out(tmp_path) as elsewhere:
        code = "const [url, done] = arguments; fetch(url).then(() => done('sent'), () => done('refused'))"
        assert view.browser.execute_async_script(code, elsewhere) == "refused"
    assert all("Content Security Policy" in message for message in view.errors())


def test_a_file_that_is_not_there_gets_a_sentence(browser, files, tmp_path):
    write_page(tmp_path, {name: content for name, content in files.items() if name != "teach.bin"})
    with handing_out(tmp_path) as root:
        browser.get(root)
        view = View(browser, root)
        view.wait(lambda: "teach.bin of this page could not be had: status 404" in view.find("#message").text)
    assert all("404" in message for message in view.errors())


def test_of_the_page_of_the_server_one_file_alone_is_another_one():
    room = Path(srwm.demo.__file__).parent
    names = [{path.name for path in (room / part).iterdir()} for part in ("static", "in_browser")]
    assert names[0] & names[1] == {"backend.js"}


def test_all_that_the_page_asks_for_is_there_and_nothing_names_another_place(files):
    page = files["index.html"].decode()
    named = set(re.findall(r'(?:src|href)="([^"]+)"', page))
    for name, content in files.items():
        if name.endswith(".js") and name not in RUNTIME_FILES:
            named |= set(re.findall(r'(?:from "\./|fetched\("|load\(")([\w.]+)"', content.decode()))
    # The page reads their names from models.json.
    assert named == {*files, "../about.html"} - {"index.html", *TRACKING_FILES}
    networks = json.loads(files["models.json"])["tracking"]["networks"]
    assert [each["file"] for each in networks] == list(TRACKING_FILES)
    assert "default-src 'none'" in page
    assert "/static/" not in page
