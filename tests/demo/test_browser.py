"""The page in a real browser: what a person does, and what she sees."""

import io

import numpy as np
import pytest
from PIL import Image

from srwm.demo import create_app
from srwm.demo.drawing import LOOKS, draw_image

from .conftest import serving
from .small import CROSS, HOOK, NAME, RING, ROOF, SHAPE, STROKES, WAVE, WAYS, small_model

pytest.importorskip("selenium", reason="runs where selenium is installed")
from selenium.webdriver.common.keys import Keys

from .browser import CHROMIUM, DRIVER, View, open_browser

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="runs where Chromium and chromedriver are installed"
)


@pytest.fixture(scope="module")
def browser():
    opened = open_browser()
    yield opened
    opened.quit()


@pytest.fixture
def view(browser, port):
    opened = View(browser, f"http://127.0.0.1:{port}/")
    opened.open()
    yield opened
    assert opened.errors() == []


def teach_all(view):
    for label, strokes in enumerate(STROKES):
        view.teach(label, strokes)


def test_drawing_teaching_and_asking(view):
    assert view.texts("#answers tbody th") == ["A", "B", "C", "D", "E"]
    assert [box.find_element("css selector", ".teach").is_enabled() for box in view.all(".box")] == [False] * WAYS
    view.ask(WAVE)
    before = view.shares("on"), view.shares("off")
    assert before[0] == before[1]
    assert "both can only guess" in view.find("#compared").text
    teach_all(view)
    assert "nothing that you teach can reach it" in view.find("#compared").text
    assert view.texts(".count") == ["✓"] * WAYS
    assert view.texts(".thumb-name") == ["A", "B", "C", "D", "E"]
    assert view.find("#time-text").text == "after 5 of 5 examples"
    view.wait(lambda: view.shares("on") != before[0])
    assert view.shares("off") == before[1]
    assert view.find("#best-on").text in "ABCDE"


def test_the_answer_changes_as_one_draws(view):
    teach_all(view)
    view.ask(HOOK)
    half, maps = view.shares("on"), view.maps()
    view.draw(view.find("#question"), RING)
    view.wait(lambda: view.shares("on") != half)
    view.wait(lambda: view.maps() != maps)
    assert "While you draw" in view.find("#moment").text


def test_the_matrices_rewrite_themselves_and_go_back_in_time(view):
    start = view.maps()
    assert set(view.texts(".rate .number")) == {"\N{EN DASH}"}
    for label in (0, 1):
        view.teach(label, STROKES[label])
    view.wait(lambda: view.find("#moment").text == "After 2 examples")
    after_two = view.maps()
    assert "\N{EN DASH}" not in view.texts(".rate .number")
    view.find("#time").send_keys(Keys.ARROW_LEFT)
    view.wait(lambda: view.find("#moment").text == "After 1 example")
    assert view.find("#time-text").text == "after 1 of 2 examples"
    assert view.maps() not in (start, after_two)
    view.find("#time").send_keys(Keys.HOME)
    view.wait(lambda: view.maps() == start)
    view.all(".thumb")[1].click()
    view.wait(lambda: view.maps() == after_two)


def test_a_drawing_in_a_box_shows_what_teaching_it_would_do(view):
    start = view.maps()
    view.draw_example(2, HOOK)
    view.wait(lambda: view.maps() != start)
    assert view.find("#moment").text == "While you draw: what teaching this C would do to them"
    preview = view.maps()
    view.box(2).find_element("css selector", ".teach").click()
    view.wait(lambda: view.find("#moment").text == "After 1 example")
    assert view.maps() == preview
    view.draw_example(3, ROOF)
    view.wait(lambda: view.maps() != preview)
    view.box(3).find_element("css selector", ".clear").click()
    view.wait(lambda: view.maps() == preview)


def test_a_layer_and_a_head_can_be_looked_at_alone(view):
    assert len(view.all(".map")) == 4
    view.all(".map")[1].click()
    assert len(view.all(".map")) == 2
    assert view.find("#head").get_attribute("value") == "1"
    view.find("#layer").send_keys("2")
    assert [title.text for title in view.all(".layer h3")] == ["Layer 2"]


def test_forgetting_switching_and_resetting(view):
    teach_all(view)
    view.ask(WAVE)
    after_five = view.shares("on")
    view.all(".drop")[1].click()
    view.wait(lambda: view.texts(".thumb-name") == ["A", "C", "D", "E"])
    view.wait(lambda: view.shares("on") != after_five)
    assert view.texts(".count:not([hidden])") == ["✓"] * 4
    assert view.holds() == ["taught", "nothing", "taught", "taught", "taught"]
    assert view.find("#forget").text == "Forget E"
    view.find("#forget").click()
    view.wait(lambda: view.texts(".thumb-name") == ["A", "C", "D"])
    maps = view.maps()

    view.find("#switch").click()
    view.wait(lambda: view.texts("#answers tbody th") == ["F", "G", "H", "I", "J"])
    assert view.find("#task").text == "task 2"
    assert (view.maps(), view.texts(".thumb-name")) == (maps, ["A", "C", "D"])
    view.teach(0, RING)
    assert view.texts(".thumb-name") == ["A", "C", "D", "F"]
    view.all(".thumb")[0].click()
    assert view.texts("#answers tbody th") == ["A", "B", "C", "D", "E"]

    view.find("#reset").click()
    view.wait(lambda: view.all(".strip li") == [])
    assert view.texts("#answers tbody th") == ["A", "B", "C", "D", "E"]
    assert "Nothing taught yet" in view.find("#moment").text


def test_names_are_text_and_nothing_else(view):
    assert view.find("#about").text.startswith(NAME)
    assert "trained on Strokes" in view.find("#about").text
    name = view.find(".name")
    name.clear()
    name.send_keys("<img src=x>", Keys.TAB)
    view.wait(lambda: view.texts("#answers tbody th")[0] == "<img src=x>")
    view.teach(0, CROSS)
    assert view.texts(".thumb-name") == ["<img src=x>"]
    assert view.all("img") == []


def test_pictures_are_taken_from_disk(view, tmp_path):
    ink = draw_image(HOOK, LOOKS["strokes"], SHAPE)[0]
    Image.fromarray(255 - ink).save(tmp_path / "hook.png")
    view.box(1).find_element("css selector", "input[type=file]").send_keys(str(tmp_path / "hook.png"))
    teach = view.box(1).find_element("css selector", ".teach")
    view.wait(teach.is_enabled)
    assert view.holds()[:3] == ["nothing", "draft", "nothing"]
    teach.click()
    view.wait(lambda: view.texts(".thumb-name") == ["B"])
    (tmp_path / "broken.png").write_bytes(b"no picture")
    view.find("#question-file").send_keys(str(tmp_path / "broken.png"))
    view.wait(lambda: "not an image that can be read" in view.find("#message").text)
    # The browser itself notes every answer that is a refusal.
    assert all("/api/pictures" in message for message in view.errors())


def test_everything_can_be_done_with_keys(view):
    body = view.find("body")
    body.send_keys("2")
    canvas = view.browser.switch_to.active_element
    assert canvas == view.box(1).find_element("css selector", "canvas")
    canvas.send_keys(" ", *[Keys.ARROW_RIGHT] * 5, *[Keys.ARROW_DOWN] * 5, " ")
    assert view.holds()[1] == "draft"
    canvas.send_keys(Keys.ENTER)
    view.wait(lambda: view.texts(".thumb-name") == ["B"])
    canvas.send_keys("0")
    question = view.browser.switch_to.active_element
    question.send_keys(" ", *[Keys.ARROW_LEFT] * 6)
    view.wait(lambda: view.shares("on")[0] != "")
    question.send_keys(Keys.DELETE)
    view.wait(lambda: view.shares("on")[0] == "")
    question.send_keys("[")
    view.wait(lambda: view.find("#time-text").text == "after 0 of 1 example")
    question.send_keys("]", Keys.SHIFT + "f")
    view.wait(lambda: view.all(".strip li") == [])
    question.send_keys(Keys.SHIFT + "s")
    view.wait(lambda: view.find("#task").text == "task 2")
    question.send_keys(Keys.SHIFT + "r")
    view.wait(lambda: not view.find("#task").is_displayed())
    question.send_keys("?")
    assert view.find("#keys").get_attribute("open") == "true"


def test_everything_has_a_name_for_those_who_cannot_see_it(view):
    view.teach(0, CROSS)
    nameless = view.script("""
        return [...document.querySelectorAll("button, input, select, canvas[tabindex]")].filter((each) =>
            !(each.getAttribute("aria-label") || each.textContent.trim() || each.labels?.[0]?.textContent.trim())
        ).map((each) => each.outerHTML)""")
    assert nameless == []
    view.ask(RING)
    view.wait(lambda: view.texts("#spoken") == [f"It says {view.find('#best-on').text}."])


def test_a_reload_keeps_what_was_taught(view):
    view.teach(0, CROSS)
    view.teach(1, RING)
    maps = view.maps()
    view.open(fresh=False)
    view.wait(lambda: view.texts(".thumb-name") == ["A", "B"])
    assert view.maps() == maps
    assert view.holds()[:3] == ["taught", "taught", "nothing"]


def test_a_session_that_is_gone_begins_anew(view):
    view.script("sessionStorage.setItem('session', 'gone')")
    view.open(fresh=False)
    view.teach(0, CROSS)
    assert all("/api/sessions/gone" in message for message in view.errors())


def test_show_me_teaches_and_asks_by_itself(view):
    view.find("#show-me").click()
    view.wait(lambda: view.texts(".thumb-name") == ["A", "B", "C", "D", "E"])
    view.wait(lambda: view.shares("on")[0] != "")
    assert not view.find("#show-me").is_enabled()


def test_it_fits_on_a_phone_and_takes_fingers(view):
    view.open(width=360, height=740)
    assert view.script("return document.documentElement.scrollWidth") == 360
    wide = view.script("""
        return [...document.querySelectorAll("main *:not(.strip *)")].filter((each) => {
            const box = each.getBoundingClientRect();
            return box.width > 1 && (box.right > 361 || box.left < -1);
        }).map((each) => each.className)""")
    assert wide == []
    view.teach(0, CROSS, kind="touch")
    view.ask(CROSS, kind="touch")
    assert view.texts(".thumb-name") == ["A"]
    assert view.script("return getComputedStyle(document.querySelector('.pad')).touchAction") == "none"


def brightness(picture):
    return np.asarray(Image.open(io.BytesIO(picture)).convert("L")).mean()


def test_it_is_light_by_day_and_dark_by_night(view):
    view.teach(0, CROSS)
    ink = "return getComputedStyle(document.querySelector('.pad')).color"
    light, light_ink, maps = brightness(view.picture()), view.script(ink), view.maps()
    view.set_scheme(dark=True)
    view.wait(lambda: view.maps() != maps)
    assert light > 200
    assert brightness(view.picture()) < 60
    assert view.script(ink) != light_ink


def test_a_gated_network_shows_what_it_keeps(browser):
    gated = small_model(memory_options={"forget_gates": 2, "key_map": "l2"})
    with serving(create_app(gated, NAME)) as port:
        view = View(browser, f"http://127.0.0.1:{port}/")
        view.open()
        assert view.texts(".map:first-child .letters span")[:5] == ["y", "q", "k", "β", "f"]
        assert view.texts(".layer:first-child .rate b") == ["y", "q", "k", "β", "y", "q k β f"]
        view.teach(0, RING)
        view.wait(lambda: "\N{EN DASH}" not in view.texts(".rate .number"))
        kept = [float(text) for text in view.texts(".kept .number")]
        assert len(kept) == 4
        assert all(0.9 <= each < 1 for each in kept)
        assert view.errors() == []
