"""How often the page of `srwm demo` is right, beside `srwm evaluate` on the same episodes.

A real server is started and talked to over HTTP as the page does: in each episode it is reset, taught one example of
each class, and asked one question. The drawings are test images, sent as files (`--as pictures`) or as the strokes of a
pen (`--as strokes`): those that Strokes are drawn with or, for other sources, the middle lines of the images' ink.
"""

import argparse
import http.client
import io
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.console import Console

from srwm.data import ImageSet, draw_episodes, load_images
from srwm.data.strokes import (
    _BORDER_PIXELS,
    _DRAWINGS,
    _PEN,
    _deform,
    _keep_inside,
    _write,
    child_keys,
    class_keys,
    compose,
)
from srwm.demo import create_app, listen
from srwm.demo.serve import make_server
from srwm.errors import InputError
from srwm.fewshot import FewShotModel, load_model

RNG_STREAM = 0xDE30
"""Keeps these episodes apart from those of training."""
OWN_SIZE = 105
"""Height and width of the images as they are in Omniglot."""

Drawing = dict[str, Any]


class Page:
    """What a page does, without its looks."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._session = f"/api/sessions/{self._send('/api/sessions', {})['session']}"
        self.seconds: list[float] = []

    def close(self) -> None:
        """Leave."""
        self._connection.close()

    def ask(self, support: Sequence[Drawing], labels: Sequence[int], query: Drawing) -> int:
        """Teach examples to a new network, and say which class it takes a question for."""
        self._send(f"{self._session}/reset", {})
        for drawing, label in zip(support, labels, strict=True):
            self._send(f"{self._session}/teach", {"label": label, "drawing": drawing})
        began = time.perf_counter()
        answer = self._send(f"{self._session}/predict", {"drawing": query, "time": len(labels), "label": None})
        self.seconds.append(time.perf_counter() - began)
        return int(np.argmax(answer["on"]))

    def upload(self, picture: bytes) -> Drawing:
        """Send an image file, and get the drawing that the page makes of it."""
        return {"pixels": self._send("/api/pictures?ink=auto", picture)["pixels"]}

    def _send(self, path: str, body: Any) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._connection.request("POST", path, data, {"content-type": "application/json"})
        response = self._connection.getresponse()
        content = json.loads(response.read())
        if response.status != 200:
            raise InputError(f"{path}: {content['error']}")
        return content


def picture_of(image: torch.Tensor, dark_ink: bool) -> bytes:
    """Make a PNG file of an image, with dark ink on white paper if asked."""
    pixels = image.numpy()
    pixels = 255 - pixels if dark_ink else pixels
    file = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(file, "PNG")
    return file.getvalue()


def strokes_of_strokes(images: ImageSet, per_class: int = 20) -> list[Drawing]:
    """The paths that the test images of Strokes are drawn along."""
    classes = images.num_classes
    keys = class_keys("test", 0, classes)
    class_of = np.repeat(np.arange(classes), per_class)
    number = np.tile(np.arange(_DRAWINGS, _DRAWINGS + per_class, dtype=np.uint64), classes)
    programs = compose(keys).rows(class_of)
    hands, pages, _ = (child_keys(child_keys(keys[class_of], number), np.array([i], dtype=np.uint64)) for i in range(3))
    points = _deform(_write(programs, hands, steps=8), pages)
    size = images.images.shape[-1]
    points = _keep_inside(programs, points, np.full(len(points), _PEN + _BORDER_PIXELS / size))
    return [
        {"strokes": np.clip(path[:count], 0, 1).round(4).tolist()}
        for path, count in zip(points, programs.count, strict=True)
    ]


def strokes_of_ink(image: torch.Tensor) -> Drawing:
    """The middle lines of the ink of an image, in short pieces."""
    ink = thin(image[0].numpy() > 127)
    size = ink.shape[0]
    rows, columns = np.nonzero(ink)
    here = set(zip(rows.tolist(), columns.tolist(), strict=True))
    steps = ((0, 1), (1, 0), (1, 1), (1, -1))
    pieces = [[(r, c), (r + dr, c + dc)] for r, c in here for dr, dc in steps if (r + dr, c + dc) in here]
    joined = {point for piece in pieces for point in piece}
    pieces += [[point] for point in here - joined]
    return {"strokes": [[[round((c + 0.5) / size, 4), round((r + 0.5) / size, 4)] for r, c in each] for each in pieces]}


def thin(ink: np.ndarray) -> np.ndarray:
    """Reduce ink to lines one pixel wide (Zhang and Suen, 1984)."""
    ink = np.pad(ink, 1)
    turns = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
    while True:
        before = ink.copy()
        for first in (True, False):
            around = np.stack([np.roll(ink, (-r, -c), axis=(0, 1)) for r, c in turns])
            north, _, east, _, south, _, west, _ = around
            number = around.sum(axis=0)
            changes = (~around & np.roll(around, -1, axis=0)).sum(axis=0)
            if first:
                keeps = (north & east & south) | (east & south & west)
            else:
                keeps = (north & east & west) | (north & south & west)
            ink = ink & ~((number >= 2) & (number <= 6) & (changes == 1) & ~keeps)
        if (ink == before).all():
            return ink[1:-1, 1:-1]


def drawings(source: str, way: str, images: ImageSet, data: Path | None, page: Page) -> Callable[[int], Drawing]:
    """Say how the page is shown each of the images."""
    if source == "strokes":
        if way == "strokes":
            return strokes_of_strokes(images).__getitem__
        return lambda index: page.upload(picture_of(images.images[index], dark_ink=False))
    large = load_images(source, "test", folder=data, image_size=OWN_SIZE).images  # type: ignore[arg-type]
    if way == "strokes":
        return lambda index: strokes_of_ink(large[index])
    # Ink on paper, as in the files of Omniglot.
    return lambda index: page.upload(picture_of(large[index], dark_ink=large.shape[1] == 1))


def compare(
    model: FewShotModel, source: str, way: str, *, episodes: int, seed: int, data: Path | None = None
) -> dict[str, float]:
    """Run episodes on the page and by the standard protocol.

    Returns:
        Accuracies of both, half the widths of their 95% intervals and of that of their difference, and how long an
        answer took.
    """
    channels, size, _ = model.image_shape
    images = load_images(source, "test", folder=data, image_size=size, channels=channels)
    listening = listen(0)
    server = make_server(create_app(model, "benchmark"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    page = Page(listening.getsockname()[1])
    try:
        drawing = drawings(source, way, images, data, page)
        drawn = draw_episodes(
            images,
            torch.tensor(0),
            batch_size=episodes,
            ways=model.ways,
            shots=1,
            queries=1,
            seed=seed,
            rng_stream=RNG_STREAM,
        )
        wanted = drawn.query_labels[:, 0]
        answers = [
            page.ask([drawing(i) for i in support.tolist()], labels.tolist(), drawing(int(query)))
            for support, labels, query in zip(drawn.support, drawn.support_labels, drawn.query[:, 0], strict=True)
        ]
        state = model.learn(images.images[drawn.support], drawn.support_labels)
        by_book = model.predict(images.images[drawn.query], state)[:, 0].argmax(dim=-1)
    finally:
        page.close()
        server.should_exit = True
        thread.join()
        listening.close()
    right_page = (torch.tensor(answers) == wanted).double()
    right_book = (by_book == wanted).double()
    result = {}
    for name, values in (("page", right_page), ("book", right_book), ("difference", right_page - right_book)):
        result[name] = float(values.mean())
        result[f"{name}_interval"] = float(1.96 * values.std() / len(values) ** 0.5)
    result["median_ms"], result["slow_ms"] = (1e3 * float(np.quantile(page.seconds, q)) for q in (0.5, 0.99))
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Print the comparison and return the exit status."""
    parser = argparse.ArgumentParser(
        description="Accuracy of the page of `srwm demo`, beside that by the standard protocol."
    )
    parser.add_argument("model", help="a model that comes with srwm, or the folder of a run")
    parser.add_argument("--source", help="test images (default: those of the model's recipe)")
    parser.add_argument(
        "--as", dest="way", choices=("pictures", "strokes"), default="strokes", help="(default: strokes)"
    )
    parser.add_argument("--episodes", type=int, default=1000, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument("--data", type=Path, help="the data folder (default: SRWM_DATA, else your cache folder)")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    try:
        model = load_model(args.model)
        source = args.source or model.config.task.source
        found = compare(model, source, args.way, episodes=args.episodes, seed=args.seed, data=args.data)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    show = Console(highlight=False, soft_wrap=True).print
    show(f"{args.model}, {source} test classes as {args.way}, {model.ways}-way 1-shot, {args.episodes:,} episodes")
    for name, label in (("page", "the page"), ("book", "by the standard protocol"), ("difference", "difference")):
        show(f"  {label:<12} {found[name]:7.2%} ± {found[f'{name}_interval']:.2%}")
    show(f"  from drawing to answer: {found['median_ms']:.1f} ms, 99 in 100 within {found['slow_ms']:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
