"""`srwm train`, `srwm evaluate` and `srwm recipes` on streams."""

import json
import os

import pytest

from fewshot.tiny import write_images
from srwm.cli import main
from srwm.runs.config import from_json
from srwm.sequential import RECIPES, SequentialConfig

TINY = [
    *(f"stream.{each}" for each in ("ways=3", "per_class=4", "max_trim=5", "image_size=16")),
    *(f"model.{each}" for each in ("encoder_channels=4", "hidden_size=8", "num_heads=2", "ff_size=8", "num_layers=1")),
    *(f"train.{each}" for each in ("batch_size=4", "total_steps=4", "log_every=2", "validate_every=2")),
    *(f"train.{each}" for each in ("checkpoint_every=2", "validation_episodes=5", "test_sets=2", "test_episodes=4")),
]


def run(argv, capsys):
    """Run the command line in this process; give its status, output and error output."""
    try:
        status = main([str(word) for word in argv])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def train(sources, out, capsys, *more, recipe="sequential-strokes", options=()):
    values = [f"stream.sources={','.join(sources)}", *TINY, *more]
    settings = [word for value in values for word in ("--set", value)]
    return run(["train", recipe, "--device", "cpu", "--out", out, *options, *settings], capsys)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return [f"folder:{write_images(tmp_path_factory.mktemp(name) / name, per_class=6)}" for name in ("one", "two")]


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "220")


@pytest.fixture
def trained(sources, tmp_path, capsys):
    assert train(sources, tmp_path / "run", capsys)[0] == 0
    return tmp_path / "run"


def test_a_recipe_trains_is_tested_and_evaluated_again(sources, tmp_path, capsys):
    status, out, _ = train(sources, tmp_path / "run", capsys)
    assert status == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["kind"], result["step"]) == ("sequential", 4)
    assert "sequential-strokes, seed 0" in out
    total = f"{100 * result['test']['orders'][0]['segments'][0]['total']['mean']:.1f} ±"
    assert total in out
    status, out, _ = run(["evaluate", tmp_path / "run", "--sets", 2, "--episodes", 4, "--device", "cpu"], capsys)
    assert status == 0
    assert total in out


def test_evaluate_prints_json(trained, capsys):
    words = ["evaluate", trained, "--sets", 1, "--episodes", 3, "--device", "cpu", "--json"]
    found = json.loads(run(words, capsys)[1])
    assert found["streams"] == 3
    assert found["stream"]["ways"] == 3
    assert [order["sources"] for order in found["orders"]] == [["one", "two"], ["two", "one"]]
    assert json.loads(run([*words, "--seed", 1], capsys)[1])["orders"] != found["orders"]


def test_evaluate_reads_the_split_that_is_asked_for(tmp_path, capsys):
    folder = write_images(tmp_path / "images", per_class=6)
    train([f"folder:{folder}"], tmp_path / "run", capsys, options=["--no-test"])
    (broken, *_) = sorted((folder / "validation").rglob("*.png"))
    broken.write_bytes(b"no image")
    words = ["evaluate", tmp_path / "run", "--sets", 1, "--episodes", 3, "--device", "cpu", "--split"]
    assert run([*words, "test"], capsys)[0] == 0
    status, _, err = run([*words, "validation"], capsys)
    assert status == 2
    assert str(broken) in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sets", "0"], "0 sets of 816 streams; expected at least one of each"),
        (["--shots", "2"], "--shots is for few-shot"),
        (["--source", "omniglot"], "--source is for few-shot"),
        (["--invert"], "--invert is for few-shot"),
    ],
)
def test_evaluate_refuses_what_is_not_for_streams(trained, capsys, words, sentence):
    status, out, err = run(["evaluate", trained, "--device", "cpu", *words], capsys)
    assert (status, out) == (2, "")
    assert sentence in err


def test_a_run_goes_on_and_is_not_written_over(trained, sources, capsys):
    status, _, err = train(sources, trained, capsys)
    assert status == 2
    assert "already holds a run" in err
    assert train(sources, trained, capsys, "train.total_steps=6", options=["--resume"])[0] == 0
    assert json.loads((trained / "result.json").read_text())["step"] == 6


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "sequential-stroks"], "did you mean 'sequential-strokes'?"),
        (["train", "sequential-strokes", "--set", "task.ways=3"], "unknown name 'task.ways'"),
        (["train", "sequential-strokes", "--set", "stream.order=odd"], "expected one of alternating, random, fixed"),
        (["train", "sequential-omniglot-miniimagenet"], "omniglot is not in"),
        (["recipes", "sequential-fore"], "there is no recipe 'sequential-fore'"),
    ],
)
def test_what_cannot_be_exits_2_with_a_sentence_and_leaves_nothing(words, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(words, capsys)
    assert (status, out) == (2, "")
    assert sentence in err
    assert os.listdir(tmp_path) == []


def test_recipes_lists_streams_and_shows_every_value(capsys):
    out = run(["recipes"], capsys)[1]
    assert all(f" {name} " in out for name in RECIPES)
    assert " omniglot-1shot " in out
    out = run(["recipes", "sequential-three"], capsys)[1]
    for word in ("stream.max_trim", "tiny-imagenet-100", "train.truncate", "Streams of a step"):
        assert word in out


def test_recipes_as_json_can_be_read_again(capsys):
    found = json.loads(run(["recipes", "--json"], capsys)[1])
    for name, entry in RECIPES.items():
        assert from_json(SequentialConfig, found[name]) == entry.config
