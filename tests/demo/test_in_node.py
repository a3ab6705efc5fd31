"""What the page computes without a server, run by Node.js: the same pixels and the same memory as Python's."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

import srwm.demo
from srwm.data.decode import resize_images
from srwm.demo.drawing import draw_image, look_of
from srwm.demo.samples import FIRST_SEED, sample_images
from srwm.demo.static_page import look_view
from srwm.demo.stream_history import INSTANCES, MAX_BINS, RECENT, RUNNING, SHOWN, History, Lived, Shown
from srwm.demo.stream_learner import StreamLearner
from srwm.demo.stream_views import stream_model_view
from srwm.demo.tasks import draw_task
from srwm.sequential.bank import INVERTED

from .small import STROKES
from .small_stream import small_stream_model

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="runs where Node.js is installed")

FRAME = """
import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(0));
const text = (bytes) => Buffer.from(bytes).toString("base64");
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64"));
%s
process.stdout.write(JSON.stringify(made));
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The modules of the page in one folder, as in the site."""
    folder, room = tmp_path_factory.mktemp("modules"), Path(srwm.demo.__file__).parent
    for part in ("static", "in_browser"):
        for path in (room / part).glob("*.js"):
            (folder / path.name).write_bytes(path.read_bytes())
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


@pytest.fixture
def in_node(modules):
    """Run lines of JavaScript that make `made` of `given`."""

    def run(code, given):
        command = [NODE, "--input-type=module", "-e", FRAME % code]
        done = subprocess.run(command, cwd=modules, input=json.dumps(given), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def pixels(text, *shape):
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape)


def drawings():
    """Drawings of every kind: usual ones, a dot, tiny and huge ones, at the edge, and wild ones."""
    generator = np.random.Generator(np.random.Philox(key=7))
    wild = [[generator.random((points, 2)).round(4).tolist()] for points in (2, 3, 10, 40)]
    small = [[[[0.5, 0.5]]], [[[0.0, 1.0]]], [[[0.01, 0.01], [0.02, 0.015]]], [[[0.0, 0.0], [1.0, 1.0]]]]
    return [*STROKES, *small, *wild, [stroke for each in wild for stroke in each]]


def test_a_drawing_becomes_the_same_image(in_node):
    code = """
        import { drawImage } from "./drawing.js";
        const draw = ([strokes, look, channels, size]) => text(drawImage(strokes, look, { channels, size }));
        const made = given.map(draw);"""
    looks = [look_of(source) for source in ("strokes", "omniglot", "unknown")]
    shapes = [(1, 28), (3, 20), (1, 84)]
    cases = [(strokes, look, *shape) for strokes in drawings() for look in looks for shape in shapes]
    made = in_node(code, [(strokes, look_view(look), *shape) for strokes, look, *shape in cases])
    for (strokes, look, channels, size), theirs in zip(cases, made, strict=True):
        ours = draw_image(strokes, look, (channels, size, size))
        assert np.array_equal(pixels(theirs, channels, size, size), ours)


def test_images_are_resized_as_pillow_resizes_them(in_node):
    generator = np.random.Generator(np.random.Philox(key=1))
    cases = []
    for height, width, size in ((105, 105, 28), (28, 28, 28), (9, 200, 28), (300, 7, 20), (1, 1, 8), (33, 21, 84)):
        image = generator.integers(0, 256, (height, width), dtype=np.uint8)
        cases.append((image, size))
    code = """
        import { resize } from "./resize.js";
        const made = given.map(([image, width, height, size]) => text(resize(bytes(image), width, height, size)));"""
    given = [[base64.b64encode(image.tobytes()).decode(), *image.shape[::-1], size] for image, size in cases]
    for (image, size), made in zip(cases, in_node(code, given), strict=True):
        assert np.array_equal(pixels(made, size, size), resize_images(image[None, None], size)[0, 0])


def test_made_up_characters_are_the_same(in_node):
    code = """
        import { drawStrokes } from "./strokes.js";
        const made = given.map(([number, size, classes]) =>
            drawStrokes({ seed: BigInt(number), size, classes, perClass: 2 }).map(text));"""
    cases = [(number, size, classes) for number in (0, 5, 10**6) for size, classes in ((28, 5), (20, 30))]
    made = in_node(code, [(FIRST_SEED + number, size, classes) for number, size, classes in cases])
    for (number, size, classes), theirs in zip(cases, made, strict=True):
        ours = [image for pair in sample_images(number, classes, (1, size, size)) for image in pair]
        assert np.array_equal([pixels(each, 1, size, size) for each in theirs], ours)


@pytest.mark.parametrize("sources", [("strokes",), ("strokes", "strokes+inverted"), ("strokes+inverted",)])
def test_the_tasks_of_a_stream_are_the_same(in_node, sources):
    model = small_stream_model(sources=sources, channels=3)
    about = {
        "model": stream_model_view("it", StreamLearner(model)),
        "source_names": list(model.source_names),
        "inverted_ending": INVERTED,
    }
    code = """
        import { drawTask } from "./tasks.js";
        const made = given.tasks.map(([seed, number]) => {
            const { images, labels, source, isInverted } = drawTask(given.about, seed, number);
            return [images.map(text), labels, source, isInverted];
        });"""
    tasks = [(0, 0), (0, 1), (3, 2), (2**31 - 1, 1000)]
    for (seed, number), made in zip(tasks, in_node(code, {"about": about, "tasks": tasks}), strict=True):
        ours = draw_task(model, seed, number)
        assert np.array_equal([pixels(each, *model.image_shape) for each in made[0]], ours.images)
        assert made[1:] == [ours.labels, model.source_names.index(ours.source), ours.is_inverted]


def test_of_a_life_the_same_is_remembered(in_node):
    generator = np.random.Generator(np.random.Philox(key=2))
    steps = 2 * MAX_BINS + RECENT + 3
    lives = [
        Lived(i + 1, i // 30, i % 30 + 1, int(generator.integers(1, 15)), *generator.integers(0, 2, 2).tolist())
        for i in range(steps)
    ]
    bounds = {"recent": RECENT, "running": RUNNING, "shown": SHOWN, "instances": INSTANCES, "bins": MAX_BINS}
    code = """
        import { History } from "./history.js";
        const history = new History(given.bounds);
        for (const life of given.lives) history.add(life, life.step / 8);
        const { recent, shown, steps, right, instances, bins, binWidth, running } = history;
        const numbers = shown.map((each) => each.step);
        const made = { recent, shown: numbers, steps, right, instances, bins, binWidth, running };"""
    made = in_node(code, {"bounds": bounds, "lives": [life._asdict() for life in lives]})
    history = History()
    for life in lives:
        history.add(Shown(life, (0.5, 0.5), torch.zeros(1, 2, 2, dtype=torch.uint8), False), life.step / 8)
    assert made == {
        "recent": [[each.task, int(each.is_right)] for each in history.recent],
        "shown": [each.lived.step for each in history.shown],
        "steps": history.steps,
        "right": history.right,
        "instances": history.instances,
        "bins": [[each.images, each.right, each.norm] for each in history.bins],
        "binWidth": history.bin_width,
        "running": list(history.running),
    }
