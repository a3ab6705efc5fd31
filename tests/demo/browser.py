"""Chromium, driven by a test or by `pictures.py`."""

import base64
import shutil

from selenium import webdriver
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")


def open_browser(*, performance=False):
    """Open Chromium; with `performance`, its log of all that it asks the network for."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    # In containers, where tests run as root, Chromium's own sandbox cannot start.
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(word)
    logs = {"browser": "ALL", **({"performance": "ALL"} if performance else {})}
    options.set_capability("goog:loggingPrefs", logs)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


class View:
    """The page in a window."""

    def __init__(self, browser, url):
        self.browser, self.url = browser, url

    def open(self, width=1360, height=960, dark=False, fresh=True):
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.set_scheme(dark)
        if fresh and self.browser.current_url.startswith(self.url):
            self.script("sessionStorage.clear()")
        self.browser.get(self.url)
        self.wait(lambda: self.script("return document.body.dataset.ready"))

    def set_scheme(self, dark):
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def script(self, code, *arguments):
        return self.browser.execute_script(code, *arguments)

    def wait(self, condition):
        """Wait until something holds; give what it gave."""
        return WebDriverWait(self.browser, 60, poll_frequency=0.02).until(lambda _: condition())

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        return self.script("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def box(self, label):
        return self.all(".box")[label]

    def draw(self, canvas, strokes, kind="mouse"):
        """Draw with a pointer, in image sides."""
        self.script("arguments[0].scrollIntoView({block: 'center'})", canvas)
        size = canvas.size["width"]
        actions = ActionBuilder(self.browser, mouse=PointerInput(kind, f"my {kind}"), duration=0)
        pointer = actions.pointer_action
        for stroke in strokes:
            for i, (x, y) in enumerate(stroke):
                pointer.move_to(canvas, round((x - 0.5) * size), round((y - 0.5) * size))
                if i == 0:
                    pointer.pointer_down()
            pointer.pointer_up()
        actions.perform()
        self.settle()

    def draw_example(self, label, strokes, kind="mouse"):
        self.draw(self.box(label).find_element(By.CSS_SELECTOR, "canvas"), strokes, kind)

    def teach(self, label, strokes, kind="mouse"):
        number = len(self.all(".strip li"))
        self.draw_example(label, strokes, kind)
        self.box(label).find_element(By.CSS_SELECTOR, ".teach").click()
        self.wait(lambda: len(self.all(".strip li")) == number + 1)

    def leave(self):
        """Move the pointer to the edge, where it lies upon nothing."""
        actions = ActionBuilder(self.browser, duration=0)
        actions.pointer_action.move_to_location(1, 1)
        actions.perform()

    def shares(self, key):
        """How long the bars are, which is finer than the numbers beside them; nothing if there is no answer."""
        code = """
            return [...document.querySelectorAll(arguments[0])].map((each) =>
                each.textContent && each.previousSibling.style.width)"""
        return self.script(code, f"#answers tbody .{key} .share")

    def settle(self):
        """Wait until what was drawn last is answered."""
        self.wait(lambda: self.find("#answers").get_attribute("aria-busy") != "true")

    def ask(self, strokes, kind="mouse"):
        self.find("#question-clear").click()
        self.wait(lambda: self.shares("on")[0] == "")
        self.draw(self.find("#question"), strokes, kind)

    def holds(self):
        """What is in each box: nothing, a draft, or what was taught."""
        return self.script("return [...document.querySelectorAll('.box canvas')].map((each) => each.dataset.holds)")

    def maps(self):
        """All pixels of all matrices, as one text."""
        code = "return [...document.querySelectorAll('.map canvas')].map(canvas => canvas.toDataURL()).join()"
        return self.script(code)

    def picture(self, whole=False):
        """The window, or the whole page, as a PNG file."""
        found = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": whole})
        return base64.b64decode(found["data"])

    def errors(self):
        return [each["message"] for each in self.browser.get_log("browser") if each["level"] == "SEVERE"]
