"""`benchmarks/demo_accuracy.py`: test images replayed on the page, as files and as strokes."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from srwm.data import load_images
from srwm.demo.drawing import LOOKS, draw_image

from .small import CROSS, RING, SHAPE, SIZE, small_model

PATH = Path(__file__).parent.parent.parent / "benchmarks" / "demo_accuracy.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("demo_accuracy", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def images():
    return load_images("strokes", "test", image_size=SIZE)


def test_as_pictures_the_page_answers_as_the_model_does(benchmark, images, monkeypatch):
    monkeypatch.setattr(benchmark, "load_images", lambda *args, **kwargs: images)
    found = benchmark.compare(small_model(), "strokes", "pictures", episodes=12, seed=0)
    assert found["difference"] == found["difference_interval"] == 0
    assert 0 <= found["page"] == found["book"] <= 1
    assert 0 < found["median_ms"] <= found["slow_ms"]


def test_strokes_are_those_that_the_images_show(benchmark, images):
    drawings = benchmark.strokes_of_strokes(images)
    assert len(drawings) == len(images.images)
    some = range(0, len(drawings), 97)
    drawn = np.stack([draw_image(drawings[i]["strokes"], LOOKS["strokes"], SHAPE) for i in some]).astype(float)
    wanted = images.images[list(some)].numpy().astype(float)
    # The pens differ in width, and nothing else.
    likeness = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(drawn, wanted, strict=True)]
    assert np.median(likeness) > 0.98
    assert min(likeness) > 0.8


@pytest.mark.parametrize("strokes", [CROSS, RING, [[[0.5, 0.5]]]])
def test_the_middle_lines_of_ink_give_the_ink_again(benchmark, strokes):
    large = (1, 105, 105)
    ink = draw_image(strokes, LOOKS["omniglot"], large)
    lines = benchmark.strokes_of_ink(torch.from_numpy(ink))["strokes"]
    again = draw_image(lines, LOOKS["omniglot"], large)
    assert np.sum(ink != again) < 0.1 * np.sum(ink > 0)
    assert benchmark.thin(ink[0] > 0).sum() < 0.35 * (ink > 0).sum()
