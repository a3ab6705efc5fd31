"""Makes the pictures of the page that the documentation shows: `python -m tests.demo.pictures`."""

import argparse
import io
import itertools
import math
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import torch
from PIL import Image

import srwm
from srwm.demo import create_app, listen
from srwm.demo.serve import make_server, url_of
from srwm.demo.stream_session import MAX_STEPS
from srwm.demo.tracking_session import MAX_SYMBOLS
from srwm.fewshot import load_model
from srwm.sequential import load_stream_model

from .browser import View, open_browser
from .small import Page

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"
STREAM_SEED = 7
STREAM_IMAGES = 3010
TRACKING = ("parity-srwm", "parity-deltanet")
TRACKING_SEED = 7
TRACKING_SYMBOLS = 1000
NAMES = ("spiral", "star", "fish", "house", "bolt")


def spiral():
    turns = [i / 40 for i in range(41)]
    return [[(0.5 + 0.34 * t * math.cos(14 * t), 0.5 + 0.34 * t * math.sin(14 * t)) for t in turns]]


def star():
    corners = [-math.pi / 2 + i * 4 * math.pi / 5 for i in range(6)]
    return [[(0.5 + 0.36 * math.cos(a), 0.52 + 0.36 * math.sin(a)) for a in corners]]


def fish():
    top = [
        (0.82 - 0.62 * t, 0.5 - 0.2 * math.sin(math.pi * min(1, 1.25 * t)) + 0.25 * max(0, t - 0.8)) for t in steps(24)
    ]
    low = [(x, 1 - y) for x, y in top]
    return [top[::-1] + low[1:], [top[-1], (0.14, 0.36), (0.14, 0.64), low[-1]], [(0.69, 0.45)]]


def house():
    return [
        [(0.25, 0.8), (0.25, 0.45), (0.75, 0.45), (0.75, 0.8), (0.25, 0.8)],
        [(0.18, 0.5), (0.5, 0.18), (0.82, 0.5)],
    ]


def bolt():
    return [[(0.6, 0.12), (0.34, 0.54), (0.56, 0.54), (0.4, 0.88)]]


def steps(number):
    return [i / number for i in range(number + 1)]


def by_another_hand(strokes, seed):
    """The same again, but turned, stretched and a little shaky."""
    generator = torch.Generator().manual_seed(seed)
    turn, wide, high, *_ = (torch.randn(3, generator=generator) * 0.1).tolist()
    waves = (torch.rand(4, generator=generator) * 6).tolist()

    def move(point):
        x, y = point[0] - 0.5, point[1] - 0.5
        x, y = x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)
        shake_x, shake_y = 0.02 * math.sin(9 * y + waves[0]), 0.02 * math.sin(9 * x + waves[1])
        return 0.52 + 0.92 * (1 + wide) * x + shake_x, 0.5 + 0.92 * (1 + high) * y + shake_y

    return [[move(point) for point in fine(stroke)] for stroke in strokes]


def fine(stroke):
    """The same path in short steps, as a hand makes it."""
    points = list(stroke[:1])
    for (x0, y0), (x1, y1) in itertools.pairwise(stroke):
        number = max(1, round(25 * math.hypot(x1 - x0, y1 - y0)))
        points += [(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t) for t in steps(number)[1:]]
    return points


def play(view, asked="star"):
    """Name, draw and teach the five, and ask about one of them."""
    for label, (name, draw) in enumerate(zip(NAMES, (spiral, star, fish, house, bolt), strict=True)):
        box = view.box(label).find_element("css selector", ".name")
        box.clear()
        box.send_keys(name, "\t")
        view.wait(lambda label=label, name=name: view.texts("#answers tbody th")[label] == name)
        view.teach(label, by_another_hand(draw(), seed=label))
    view.ask(by_another_hand(globals()[asked](), seed=99))
    view.script("document.activeElement.blur(); window.scrollTo(0, 0)")
    view.leave()


def save(name, *pictures):
    """Save pictures side by side; 256 colours are enough for a page as calm as this one, and make a small file."""
    images = [Image.open(io.BytesIO(picture)).convert("RGB") for picture in pictures]
    gap = 24
    width = sum(image.width for image in images) + gap * (len(images) - 1)
    sheet = Image.new("RGB", (width, images[0].height), "#8a8f96")
    for i, image in enumerate(images):
        sheet.paste(image, (i * (image.width + gap), 0))
    sheet.quantize(256, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)


def show_stream(view):
    """Open the second tab, live a while, and go on as if it were watched: the picture follows from the seed."""
    view.script("location.hash = '/stream'")
    view.wait(lambda: view.script("return document.body.dataset.streamReady"))
    page = Page(urlsplit(view.url).port)
    page.session = f"/api/stream/sessions/{view.script('return sessionStorage.stream')}"
    page.change("reset", seed=STREAM_SEED)
    for _ in range(STREAM_IMAGES // MAX_STEPS):
        page.change("steps", count=MAX_STEPS)
    page.change("steps", count=STREAM_IMAGES % MAX_STEPS)
    view.browser.refresh()
    view.wait(lambda: view.find("#lived").text == f"{STREAM_IMAGES:,}")
    view.leave()


def show_tracking(view):
    """Open the third tab, and let it read random bits: the picture follows from the seed."""
    view.script("location.hash = '/tracking'")
    view.wait(lambda: view.script("return document.body.dataset.trackingReady"))
    page = Page(urlsplit(view.url).port)
    page.session = f"/api/tracking/sessions/{view.script('return sessionStorage.tracking')}"
    bits = np.random.Generator(np.random.Philox(key=TRACKING_SEED)).integers(2, size=TRACKING_SYMBOLS).tolist()
    for start in range(0, TRACKING_SYMBOLS, MAX_SYMBOLS):
        page.change("read", symbols=bits[start : start + MAX_SYMBOLS])
    view.browser.refresh()
    view.wait(lambda: view.find("#read-symbols").text == f"{TRACKING_SYMBOLS:,}")
    view.leave()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="omniglot-1shot", help="(default: %(default)s)")
    parser.add_argument("--stream", default="strokes-stream", help="(default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    listening = listen(0)
    stream = load_stream_model(args.stream), Path(args.stream).name
    tracking = [(srwm.load(name), name) for name in TRACKING]
    server = make_server(create_app(load_model(args.model), Path(args.model).name, stream=stream, tracking=tracking))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    browser = open_browser()
    try:
        view = View(browser, url_of(listening))
        for name, dark in (("demo-light.png", False), ("demo-dark.png", True)):
            view.open(width=1320, height=1056, dark=dark)
            play(view)
            save(name, view.picture())
        view.open(width=390, height=844)
        play(view)
        screens = []
        for part in ("header", ".ask", "#layers"):
            view.script("document.querySelector(arguments[0]).scrollIntoView({block: 'start'}); scrollBy(0, -40)", part)
            screens.append(view.picture())
        save("demo-phone.png", *screens)
        for name, dark in (("demo-stream-light.png", False), ("demo-stream-dark.png", True)):
            view.open(width=1320, height=1210, dark=dark)
            show_stream(view)
            save(name, view.picture())
        for name, dark in (("demo-tracking-light.png", False), ("demo-tracking-dark.png", True)):
            view.open(width=1320, height=1056, dark=dark)
            show_tracking(view)
            save(name, view.picture())
    finally:
        browser.quit()
        server.should_exit = True
        thread.join()
        listening.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
