"""The model of streams that comes with the package: it is there, it is small, and it lives without end."""

import json

import pytest

import srwm
from srwm.cli import main
from srwm.live.trained_length import may_grow
from srwm.runs.shipped import SHIPPED, shipped_models
from srwm.sequential import load_stream_model

NAME = "strokes-stream"
FOLDER = SHIPPED / NAME


@pytest.fixture(scope="module")
def model():
    return load_stream_model(NAME)


def test_it_is_named_and_ready(model):
    assert shipped_models("sequential") == [NAME]
    assert isinstance(srwm.load(NAME), type(model))
    assert not model.training
    assert (model.ways, model.image_shape, model.config.model.memory) == (3, (1, 20, 20), "srwm")


def test_its_folder_is_small():
    files = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert set(files) == {"README.md", "model.json", "weights.safetensors"}
    assert sum(files.values()) < 3e5


def test_its_card_says_recipe_accuracy_and_licence():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    measured = json.loads((FOLDER / "model.json").read_text(encoding="utf-8"))["measured"]
    assert measured["recipe"] == "sequential-strokes-unbounded-gated"
    segments = [segment for order in measured["test"]["orders"] for segment in order["segments"]]
    assert len(segments) == 4
    assert all(f"| {segment['total']['mean']:.2%} ± " in card for segment in segments)
    assert "600 steps on average" in card
    assert "| licence of the weights | Apache-2.0 |" in card


def test_what_it_learns_in_itself_is_bounded(model):
    options = model.config.model.memory_options
    assert not may_grow(model)
    assert options["forget_gates"] == 2
    assert options["difference_clip"] == 8.0


def test_it_still_learns_after_three_thousand_images(capsys):
    # The classes switch after as many images as in its training, 15.
    stream = ["--demo", "strokes,strokes+inverted", "--steps", "3000", "--report-every", "1000"]
    assert main(["stream", NAME, *stream]) == 0
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [report["event"] for report in reports] == ["report"] * 3
    assert all(report["accuracy"] > 0.84 for report in reports)
    assert all(report["state_norm"] < 200 for report in reports)
