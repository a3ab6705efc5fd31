"""The second tab in a real browser: what a person does, and what she sees."""

import math
from urllib.parse import urlsplit

import pytest

from srwm.demo.stream_session import MAX_STEPS

from .conftest import serving
from .small import CROSS, NAME, Page, small_model
from .small_stream import STREAM_NAME, WAYS, small_stream_model

pytest.importorskip("selenium", reason="runs where selenium is installed")
from selenium.webdriver.common.keys import Keys

from srwm.demo import create_app

from .browser import CHROMIUM, DRIVER, View, open_browser
from .test_browser import brightness

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="runs where Chromium and chromedriver are installed"
)


class StreamView(View):
    """The page with its second tab open."""

    def open_stream(self, seed=0, **options):
        self.open(**options)
        self.find("#tab-stream").click()
        self.wait(lambda: self.script("return document.body.dataset.streamReady"))
        self.begin(seed)

    def begin(self, seed):
        field = self.find("#seed")
        field.clear()
        field.send_keys(str(seed), Keys.ENTER)
        self.wait(lambda: self.lived == 0)

    @property
    def lived(self):
        return int(self.find("#lived").text.replace(",", ""))

    def next(self, times=1):
        for _ in range(times):
            before = self.lived
            self.find("#step").click()
            self.wait(lambda before=before: self.lived == before + 1)

    def choose(self, selector, value):
        code = "const [e, v] = arguments; e.value = v; e.dispatchEvent(new Event('change'))"
        self.script(code, self.find(selector), value)

    def play_until(self, images):
        """Play as fast as it goes until so many images were lived, and pause."""
        self.choose("#speed", "4")
        self.find("#play").click()
        self.wait(lambda: self.lived >= images)
        self.pause()

    def pause(self):
        """Pause; what was on its way then has come when that is said."""
        self.script("document.querySelector('#spoken').textContent = ''")
        self.find("#play").click()
        self.wait(lambda: self.texts("#spoken")[0].startswith("Paused after "))
        assert self.find("#play").text == "Play"

    def known(self):
        """What the server knows of the stream."""
        name = self.script("return sessionStorage.getItem('stream')")
        return Page(urlsplit(self.url).port).get(f"/api/stream/sessions/{name}")

    def label(self, chart):
        return self.find(f"#{chart} svg").get_attribute("aria-label")


@pytest.fixture(scope="module")
def browser():
    opened = open_browser()
    yield opened
    opened.quit()


@pytest.fixture
def view(browser, stream_port):
    opened = StreamView(browser, f"http://127.0.0.1:{stream_port}/")
    opened.open_stream()
    yield opened
    assert opened.errors() == []


def test_without_a_model_of_streams_there_is_one_page_and_no_tab(browser, port):
    view = View(browser, f"http://127.0.0.1:{port}/")
    view.open()
    assert not view.find("#tabs").is_displayed()
    assert view.all("#stream") == []
    assert view.find("#teach").get_attribute("role") is None
    assert view.errors() == []


def test_it_sees_answers_and_is_told_the_truth(view):
    assert view.find("#verdict").text == "Nothing seen yet. Press Play."
    assert view.find("#stream-about").text.startswith(f"{STREAM_NAME}: ")
    assert "streams of Strokes and its negatives" in view.find("#stream-about").text
    view.next()
    shares = [float(text[:-1]) for text in view.texts("#stream-answers .share")]
    assert len(shares) == WAYS
    assert sum(shares) == pytest.approx(100, abs=2)
    says = view.find("#verdict").text
    letter = "ABC"[shares.index(max(shares))]
    assert says.startswith(f"It says {letter}, {max(shares):.0f}% sure: ")
    truths = view.texts("#stream-answers .truth")
    truth = "ABC"[truths.index("✓ the truth")]
    assert sorted(truths) == ["", "", "✓ the truth"]
    assert ("right." in says) == (truth == letter) == (f"wrong, it is {truth}." not in says)
    assert "It has not seen this class since the change." in says
    assert view.find("#stream-task").text == "task 1, image 1"
    assert view.texts("#spoken") == [f"Image 1. {says}"]
    assert view.script("return document.querySelector('#stream-image').width") == 16


def percent(right, images):
    """As JavaScript rounds: halves up."""
    return f"{math.floor(100 * right / images + 0.5)}%"


def right_of(view):
    """Right answers of a life of which no more than the last 300 images were seen."""
    return view.lived - len(view.all("#recent-chart .error"))


def test_the_images_before_stand_in_a_row_with_what_it_said(view):
    view.next(14)
    marks = view.texts("#stream-strip span")
    assert len(marks) == 12
    right = [mark.startswith("✓") for mark in marks]
    assert [item.get_attribute("class").split()[0] == "is-right" for item in view.all("#stream-strip li")] == right
    assert view.find("#running").text == view.find("#all-life").text == percent(right_of(view), 14)


def test_it_plays_by_itself_until_it_is_paused(view):
    view.play_until(300)
    lived = view.lived
    assert view.texts("#spoken")[0].startswith(f"Paused after {lived} images; ")
    assert view.find("#stream-task").text.startswith(f"task {1 + (lived - 1) // 30}, image {1 + (lived - 1) % 30}")
    assert view.label("recent-chart").startswith("The last 300 images: ")
    assert f"Over all {lived} images" in view.label("life-chart")
    told = view.known()["instances"]
    shown = [f"{place}: {percent(*counts)}" for place, counts in enumerate(told[:10], start=1)]
    shown += [f"11+: {percent(*told[10])}"] if told[10][1] else []
    assert view.label("instance-chart") == f"Right by image of a class since the change: {', '.join(shown)}."
    assert len(view.all("#instance-chart .column")) == len(shown)
    assert len(view.all("#recent-chart .change")) in (9, 10)
    assert len(view.all("#recent-chart .error")) == sum(not right for _, right in view.known()["recent"])


def test_pausing_slow_playing_needs_no_waiting(view):
    view.choose("#speed", "0")
    view.find("#play").click()
    view.wait(lambda: view.lived >= 1)
    view.pause()
    assert view.lived <= 3


def test_the_same_number_gives_the_same_life(view):
    view.next(6)
    first = view.maps(), view.texts("#stream-strip span"), view.find("#norm").text
    view.begin(1)
    view.next(6)
    assert view.maps() != first[0]
    view.begin(0)
    view.next(6)
    assert (view.maps(), view.texts("#stream-strip span"), view.find("#norm").text) == first


def test_a_number_that_is_none_gets_a_sentence(view):
    view.next(2)
    for number in ("-1", "1.5", ""):
        field = view.find("#seed")
        field.clear()
        field.send_keys(number, Keys.ENTER)
        view.wait(lambda: "a whole number from 0 to 2147483647" in view.find("#message").text)
        view.script("document.querySelector('#message').textContent = ''")
    assert view.lived == 2


def test_other_classes_come_at_once_when_they_are_asked_for(view):
    view.next(4)
    view.find("#change").click()
    view.next()
    assert view.find("#stream-task").text.startswith("task 2, image 1")
    assert len(view.all("#recent-chart .change")) == 1
    assert "is-first" in view.all("#stream-strip li")[-1].get_attribute("class")
    view.choose("#task-length", "15")
    view.next(15)
    assert view.find("#stream-task").text.startswith("task 3, image 1")


def test_the_matrices_the_rates_and_the_gates_are_shown(view):
    start = view.maps()
    names = "#stream-layers .rates .rate b", "#stream-layers .kept .rate b"
    assert view.texts(names[0])[:6] == ["y", "q", "k", "β", "y", "q k β f"]
    assert view.texts(names[1]) == ["y", "q k β f"] * 2
    assert set(view.texts("#stream-layers .rate .number")) == {"\N{EN DASH}"}
    assert view.texts("#stream-layers .map:first-child .letters span") == ["y", "q", "k", "β", "f"] * 2
    view.next(3)
    assert view.maps() != start
    kept = [float(text) for text in view.texts("#stream-layers .kept .number")]
    assert len(kept) == 4
    assert all(0.9 <= each <= 1 for each in kept)
    assert float(view.find("#norm").text) > 0
    assert view.find("#gates-note").is_displayed()
    assert not view.find("#plain-note").is_displayed()
    view.all("#stream-layers .map")[1].click()
    assert len(view.all("#stream-layers .map")) == 2
    assert view.find("#stream-head").get_attribute("value") == "1"
    # Those of the first tab stay as they are.
    assert len(view.all("#layers .map")) == 4


def test_a_reload_keeps_the_life_and_the_tab(view):
    view.next(5)
    before = view.maps(), view.texts("#stream-strip span"), view.label("recent-chart")
    view.browser.refresh()
    view.wait(lambda: view.script("return document.body.dataset.streamReady"))
    assert view.find("#stream").is_displayed()
    assert (view.lived, view.find("#seed").get_attribute("value")) == (5, "0")
    assert (view.maps(), view.texts("#stream-strip span"), view.label("recent-chart")) == before


def test_a_session_that_is_gone_begins_anew(view):
    view.next(2)
    view.script("sessionStorage.setItem('stream', 'gone')")
    view.browser.refresh()
    view.wait(lambda: view.script("return document.body.dataset.streamReady"))
    assert view.lived == 0
    view.next(2)
    assert all("/api/stream/sessions/gone" in message for message in view.errors())


def test_the_tabs_do_not_disturb_each_other(view):
    view.choose("#speed", "2")
    view.find("#play").click()
    view.wait(lambda: view.lived >= 2)
    view.find("#tab-teach").click()
    view.wait(lambda: view.find("#teach").is_displayed())
    assert not view.find("#stream").is_displayed()
    assert view.find("#about").text.startswith(NAME)
    assert view.script("return document.querySelector('#play').textContent") == "Play"
    view.teach(0, CROSS)
    taught = view.texts(".thumb-name")
    # Keys of the other tab do nothing here.
    view.find("body").send_keys("n", "p")
    assert view.script("return document.querySelector('#play').textContent") == "Play"
    view.browser.back()
    view.wait(lambda: view.find("#stream").is_displayed())
    view.find("body").send_keys(Keys.SHIFT + "f", Keys.SHIFT + "s")
    view.next()
    view.find("#tab-teach").click()
    assert view.texts(".thumb-name") == taught == ["A"]
    assert not view.find("#task").is_displayed()


def test_everything_can_be_done_with_keys(view):
    view.find("#tab-stream").send_keys(Keys.ARROW_LEFT)
    assert view.browser.switch_to.active_element == view.find("#tab-teach")
    view.wait(lambda: view.find("#teach").is_displayed())
    view.find("#tab-teach").send_keys(Keys.END)
    view.wait(lambda: view.find("#stream").is_displayed())
    assert view.script("return document.querySelector('#tab-teach').tabIndex") == -1
    body = view.find("body")
    body.send_keys("n")
    view.wait(lambda: view.lived == 1)
    body.send_keys(Keys.SHIFT + "c")
    body.send_keys("n")
    view.wait(lambda: view.find("#stream-task").text.startswith("task 2, image 1"))
    speed = int(view.find("#speed").get_attribute("value"))
    body.send_keys("+", "+", "+", "+", "+", "-")
    assert int(view.find("#speed").get_attribute("value")) == 3 > speed
    body.send_keys("p")
    view.wait(lambda: view.lived > 10)
    body.send_keys("p")
    assert view.find("#play").text == "Play"
    body.send_keys(Keys.SHIFT + "r")
    view.wait(lambda: view.lived == 0)
    body.send_keys("?")
    assert view.find("#keys").get_attribute("open") == "true"
    assert "other classes now" in view.find("#keys").text
    assert "move the pen" not in view.find("#keys").text


def test_everything_has_a_name_for_those_who_cannot_see_it(view):
    view.next(2)
    nameless = view.script("""
        const all = "button, input, select, canvas[tabindex], [role=img], table, [role=tabpanel]";
        const named = (each) => each.getAttribute("aria-label") || each.getAttribute("aria-labelledby")
            || each.textContent.trim() || each.labels?.[0]?.textContent.trim();
        return [...document.querySelectorAll(all)].filter((each) => !named(each)).map((each) => each.outerHTML)""")
    assert nameless == []
    assert view.find("#stream-image").get_attribute("aria-label").startswith("Image 2, which is ")
    ids = view.script("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))
    assert [tab.get_attribute("aria-selected") for tab in view.all("[role=tab]")] == ["false", "true"]


def test_it_fits_on_a_phone(view):
    view.open_stream(width=360, height=740)
    view.next(14)
    assert view.script("return document.documentElement.scrollWidth") == 360
    wide = view.script("""
        return [...document.querySelectorAll("#stream *:not(.life *)")].filter((each) => {
            const box = each.getBoundingClientRect();
            return box.width > 1 && (box.right > 361 || box.left < -1);
        }).map((each) => each.outerHTML)""")
    assert wide == []


def test_it_is_light_by_day_and_dark_by_night(view):
    view.next(3)
    color = "return getComputedStyle(document.querySelector('#recent-chart .curve')).stroke"
    light, light_color, maps = brightness(view.picture()), view.script(color), view.maps()
    view.set_scheme(dark=True)
    view.wait(lambda: view.maps() != maps)
    assert light > 180
    assert brightness(view.picture()) < 70
    assert view.script(color) != light_color


def test_a_life_that_ends_says_so_and_another_can_begin(browser, monkeypatch):
    # The norm of a matrix without forget gates runs away.
    norms = iter(10.0**power for power in range(0, 400, 40))
    monkeypatch.setattr("srwm.demo.stream_session.learnt_norm", lambda state: next(norms))
    with serving(create_app(small_model(), NAME, stream=(small_stream_model(), STREAM_NAME))) as port:
        view = StreamView(browser, f"http://127.0.0.1:{port}/")
        view.open_stream()
        assert view.find("#plain-note").is_displayed()
        assert view.all("#stream-layers .kept") == []
        view.next(8)
        assert view.find("#norm").text == "1.0e+280"
        norms = iter([float("inf")])
        view.find("#step").click()
        view.wait(lambda: view.find("#verdict").text.startswith("After 8 images its matrices have grown beyond all"))
        assert [view.find(name).is_enabled() for name in ("#play", "#step", "#anew")] == [False, False, True]
        norms = iter([1.0, 2.0])
        view.find("#anew").click()
        view.wait(lambda: view.lived == 0)
        view.next(2)
        assert view.errors() == []


def test_a_server_that_is_gone_stops_the_playing_with_a_sentence(browser):
    with serving(create_app(small_model(), NAME, stream=(small_stream_model(), STREAM_NAME))) as port:
        view = StreamView(browser, f"http://127.0.0.1:{port}/")
        view.open_stream()
        view.choose("#speed", "4")
        view.find("#play").click()
        view.wait(lambda: view.lived > MAX_STEPS)
    view.wait(lambda: "The server does not answer" in view.find("#message").text)
    assert view.find("#play").text == "Play"
    view.errors()
