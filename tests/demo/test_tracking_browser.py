"""The third tab in a real browser: what a person does, and what she sees."""

import pytest

from srwm.demo import create_app

from .browser import CHROMIUM, DRIVER, View, open_browser
from .conftest import serving
from .small import CROSS, NAME, small_model
from .small_stream import GATED, STREAM_NAME, small_stream_model
from .small_tracking import NAMES, small_tracker, small_tracking
from .test_browser import brightness

pytest.importorskip("selenium", reason="runs where selenium is installed")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="runs where Chromium and chromedriver are installed"
)


class TrackingView(View):
    """The page with its third tab open, and a sequence that has just begun."""

    def open_tracking(self, **options):
        self.open(**options)
        self.find("#tab-tracking").click()
        self.wait(lambda: self.script("return document.body.dataset.trackingReady"))

    @property
    def steps(self):
        return int(self.find("#read-symbols").text.replace(",", ""))

    def type(self, *symbols):
        for symbol in symbols:
            before = self.steps
            self.all("#symbols button")[symbol].click()
            self.wait(lambda before=before: self.steps == before + 1)

    def row(self, number):
        """What stands in a row of the sequence, from the first symbol that is shown."""
        code = "return [...document.querySelectorAll('#sequence tr')[arguments[0]].cells].map((each) => each.innerText)"
        _, *cells = self.script(code, number)
        return [text.replace("\n", " ") for text in cells if text]

    def play(self):
        code = "const e = document.querySelector('#tracking-speed'); e.value = 4; e.dispatchEvent(new Event('change'))"
        self.script(code)
        self.find("#tracking-play").click()

    def play_until(self, symbols):
        self.play()
        self.wait(lambda: self.steps >= symbols)
        self.script("document.querySelector('#spoken').textContent = ''")
        self.find("#tracking-play").click()
        self.wait(lambda: self.texts("#spoken")[0].startswith("Paused after "))


@pytest.fixture(scope="module")
def tracking_port():
    stream = small_stream_model(**GATED), STREAM_NAME
    with serving(create_app(small_model(), NAME, stream=stream, tracking=small_tracking())) as port:
        yield port


@pytest.fixture(scope="module")
def browser():
    opened = open_browser()
    yield opened
    opened.quit()


@pytest.fixture
def view(browser, tracking_port):
    opened = TrackingView(browser, f"http://127.0.0.1:{tracking_port}/")
    opened.open_tracking()
    yield opened
    assert opened.errors() == []


def test_a_person_types_bits_and_sees_each_answer_right_or_wrong(view):
    assert view.find("#task-title").text == "Is the number of ones so far odd?"
    assert view.find("#tracking-about").text.startswith(f"{NAMES[0]}: ")
    assert view.texts("#symbols button") == ["0", "1"]
    view.type(1, 0, 1, 1)
    assert view.row(0) == ["1", "0", "1", "1"]
    truth = view.row(1)
    assert truth == ["odd", "odd", "even", "odd"]
    assert view.find("#tracking-truth").text == "the truth: odd"
    rights = []
    for row in (2, 3):
        said = [text.split() for text in view.row(row)]
        assert [mark for _, mark in said] == [
            "✓" if answer == wanted else "✗" for (answer, _), wanted in zip(said, truth, strict=True)
        ]
        rights.append([mark for _, mark in said].count("✓"))
    shares = [text.removesuffix("%") for text in view.texts("#trackers tbody td:nth-child(3)")]
    assert [float(share) for share in shares] == [25.0 * right for right in rights]
    assert view.texts("#spoken")[0].startswith("Symbol 4 is 1, the truth odd. SRWM says ")
    assert (view.find("#times-trained").text, view.find("#trained-length").text) == ("0.1", "50")


def test_a_bit_that_was_read_can_be_turned_over(view):
    view.type(1, 0, 0)
    view.all("#sequence button")[-2].click()
    view.wait(lambda: view.row(0) == ["1", "1", "0"])
    assert view.row(1) == ["odd", "even", "even"]
    assert view.steps == 3


def test_it_runs_by_itself_beyond_the_lengths_of_the_training(view):
    start = view.maps()
    view.play_until(120)
    steps = view.steps
    assert len(view.row(0)) == 16
    assert view.find("#times-trained").text == f"{round(steps / 50 + 1e-9, 1):g}"
    label = view.find("#length-chart svg").get_attribute("aria-label")
    assert label.startswith(f"Right along {steps} symbols, from first to last: SRWM ")
    assert len(view.all("#length-chart .curve")) == 2
    assert view.find("#length-chart").text.startswith("0%\n100%\nchance\ntrained up to 50")
    assert view.maps() != start
    assert "\N{EN DASH}" not in view.texts("#tracking-layers .rate .number")
    view.find("#tracking-anew").click()
    view.wait(lambda: view.steps == 0)
    assert view.row(0) == []


def test_a_reload_keeps_the_sequence_and_the_tab(view):
    view.type(1, 1, 0)
    before = view.row(2), view.row(3), view.maps()
    view.browser.refresh()
    view.wait(lambda: view.script("return document.body.dataset.trackingReady"))
    assert view.find("#tracking").is_displayed()
    assert (view.row(2), view.row(3), view.maps()) == before


def test_the_three_tabs_do_not_disturb_each_other(view):
    view.type(1)
    view.find("#tab-stream").click()
    view.wait(lambda: view.script("return document.body.dataset.streamReady"))
    view.find("body").send_keys("n")
    view.wait(lambda: view.find("#lived").text == "1")
    view.find("#tab-teach").click()
    view.teach(0, CROSS)
    view.find("body").send_keys("1", "n")
    view.find("#tab-tracking").click()
    view.find("body").send_keys("1")
    view.wait(lambda: view.steps == 2)
    assert view.row(0) == ["1", "1"]
    assert view.script("return document.querySelector('#lived').textContent") == "1"


def test_everything_can_be_done_with_keys_and_has_a_name(view):
    body = view.find("body")
    body.send_keys("1", "0", "n")
    view.wait(lambda: view.steps == 3)
    body.send_keys("+", "+", "+")
    body.send_keys("p")
    view.wait(lambda: view.steps > 20)
    body.send_keys("p")
    assert view.find("#tracking-play").text == "Let it run"
    body.send_keys("\ue008R\ue000")
    view.wait(lambda: view.steps == 0)
    body.send_keys("?")
    assert "a symbol, such as 1" in view.find("#keys").text
    view.find("#keys button").click()
    view.type(1)
    nameless = view.script("""
        const all = "button, input, select, canvas[tabindex], [role=img], table, [role=tabpanel]";
        const named = (each) => each.getAttribute("aria-label") || each.getAttribute("aria-labelledby")
            || each.textContent.trim() || each.labels?.[0]?.textContent.trim();
        return [...document.querySelectorAll(all)].filter((e) => !e.hidden && !named(e)).map((e) => e.outerHTML)""")
    assert nameless == []
    ids = view.script("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))


def test_it_fits_on_a_phone(view):
    view.open_tracking(width=360, height=740)
    view.play_until(60)
    assert view.script("return document.documentElement.scrollWidth") == 360
    wide = view.script("""
        return [...document.querySelectorAll("#tracking *")].filter((each) => {
            const box = each.getBoundingClientRect();
            return box.width > 1 && (box.right > 361 || box.left < -1);
        }).map((each) => each.outerHTML)""")
    assert wide == []
    assert len([each for each in view.all("#sequence button") if each.is_displayed()]) == 7


def test_it_is_light_by_day_and_dark_by_night(view):
    view.play_until(60)
    light, maps = brightness(view.picture()), view.maps()
    view.set_scheme(dark=True)
    view.wait(lambda: view.maps() != maps)
    assert light > 180
    assert brightness(view.picture()) < 70


def test_networks_of_another_task_have_their_own_symbols_and_answers(browser):
    with serving(create_app(small_model(), NAME, tracking=[(small_tracker("deltanet", "cups-3"), "cups")])) as port:
        view = TrackingView(browser, f"http://127.0.0.1:{port}/")
        view.open_tracking()
        assert not view.find("#tab-stream").is_displayed()
        view.type(0, 2)
        assert (view.row(0), view.row(1)) == (["1-2", "2-3"], ["2", "3"])
        assert view.find("#tracking-layers").text == "This model has no matrices that modify themselves."
        assert view.errors() == []


def test_matrices_that_outgrow_all_numbers_stop_it_with_a_sentence(browser):
    model = small_tracker()
    with serving(create_app(small_model(), NAME, tracking=[(model, "grown")])) as port:
        view = TrackingView(browser, f"http://127.0.0.1:{port}/")
        view.open_tracking()
        view.type(1)
        model.sequence.output_projection.bias.data += float("nan")
        view.play()
        view.wait(lambda: "The matrices of grown have grown beyond all numbers" in view.find("#message").text)
        view.wait(lambda: view.find("#tracking-play").text == "Let it run")
        assert view.steps == 1
        view.errors()
