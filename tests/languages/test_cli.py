"""The commands, on runs that are too short to learn anything."""

import json
import os

import pytest
import torch

from srwm.cli import main
from srwm.languages import RECIPES, load_tracker

TINY = [
    *(f"model.{each}" for each in ("hidden_size=8", "ff_size=8", "num_layers=1")),
    *(f"train.{each}" for each in ("total_steps=4", "batch_size=4", "log_every=2", "test_sequences=5")),
    "task.test_lengths=2-9,30",
]


def run(argv, capsys):
    """Run the command line in this process; give its status, output and error output."""
    try:
        status = main([str(word) for word in argv])
    except SystemExit as stop:
        status = stop.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def train(out, capsys, *more, recipe="parity", options=()):
    settings = [word for value in (*TINY, *more) for word in ("--set", value)]
    return run(["train", recipe, "--device", "cpu", "--out", out, *options, *settings], capsys)


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "220")


@pytest.fixture
def trained(tmp_path, capsys):
    assert train(tmp_path / "run", capsys)[0] == 0
    return tmp_path / "run"


def test_a_recipe_trains_is_tested_and_evaluated_again(tmp_path, capsys):
    status, out, _ = train(tmp_path / "run", capsys, recipe="s3-lstm")
    assert status == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["kind"], result["step"], result["memory"], result["task"]) == ("languages", 4, "lstm", "s3")
    assert "s3-lstm, seed 0" in out
    positions = f" {result['test']['by_length'][1]['positions']:.1%} "
    assert positions in out
    status, out, _ = run(["evaluate", tmp_path / "run", "--device", "cpu"], capsys)
    assert status == 0
    assert positions in out
    assert "the product so far in a group of 6 elements" in out


def test_evaluate_prints_json(trained, capsys):
    words = ["evaluate", trained, "--episodes", 3, "--device", "cpu", "--json"]
    found = json.loads(run(words, capsys)[1])
    assert [(each["lengths"], each["sequences"]) for each in found["by_length"]] == [("2-9", 3), ("30", 3)]
    assert found["task"]["name"] == "parity"
    assert json.loads(run([*words, "--seed", 1], capsys)[1])["by_length"] != found["by_length"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--episodes", "0"], "--episodes: expected at least 1, got 0"),
        (["--sets", "1"], "--sets is for images"),
        (["--split", "test"], "--split is for images"),
        (["--shots", "2"], "--shots is for few-shot"),
        (["--invert"], "--invert is for few-shot"),
    ],
)
def test_evaluate_refuses_what_is_not_for_sequences(trained, capsys, words, sentence):
    status, out, err = run(["evaluate", trained, "--device", "cpu", *words], capsys)
    assert (status, out) == (2, "")
    assert sentence in err


def test_a_run_goes_on_and_is_not_written_over(trained, capsys):
    status, _, err = train(trained, capsys)
    assert status == 2
    assert "already holds a run" in err
    assert train(trained, capsys, "train.total_steps=6", options=["--resume"])[0] == 0
    assert json.loads((trained / "result.json").read_text())["step"] == 6


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "parity-gated"], "there is no recipe 'parity-gated'"),
        (["train", "parity", "--set", "stream.ways=3"], "unknown name 'stream.ways'"),
        (["train", "parity", "--set", "task.name=dyck"], "there is no task 'dyck'"),
        (["train", "parity", "--set", "task.test_lengths=x"], "'x' in test_lengths; expected a length"),
        (["train", "parity", "--set", "model.memory=gru"], "expected one of srwm, deltanet"),
        (["train", "parity", "--set", "model.num_heads=3"], "the model cannot be built"),
    ],
)
def test_what_cannot_be_exits_2_with_a_sentence_and_leaves_nothing(words, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(words, capsys)
    assert (status, out) == (2, "")
    assert sentence in err
    assert os.listdir(tmp_path) == []


def test_recipes_lists_languages_and_shows_every_value(capsys):
    out = run(["recipes"], capsys)[1]
    assert all(f" {name} " in out for name in RECIPES)
    out = run(["recipes", "anbn-srwm"], capsys)[1]
    for word in ("task.test_lengths", "51-100", "beta_init=-1.0", "Sequences of a step"):
        assert word in out


def test_a_run_is_exported_and_the_copy_gives_the_same_answers(trained, tmp_path, capsys):
    status, _, err = run(["export", trained, tmp_path / "model"], capsys)
    assert (status, err) == (0, "")
    weights = [load_tracker(path).state_dict() for path in (trained, tmp_path / "model")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    card = (tmp_path / "model" / "README.md").read_text()
    for words in ("parity, trained on lengths 2 to 50", "right at every position, length 30", "4 steps in"):
        assert words in card
    measured = json.loads((tmp_path / "model" / "model.json").read_text())["measured"]
    assert measured["test"]["by_length"][0]["lengths"] == "2-9"


def test_a_report_shows_every_length_and_both_curves(trained, tmp_path, capsys):
    status, _, err = run(["report", trained, "--out", tmp_path / "report.html"], capsys)
    assert (status, err) == (0, "")
    page = (tmp_path / "report.html").read_text()
    for words in ("whole sequences, length 30", "Sequences right at every position", "Accuracy along sequences of 30"):
        assert words in page


def test_a_sweep_compares_memories(tmp_path, capsys):
    words = ["sweep", "parity", "parity-deltanet", "--out", tmp_path / "sweep", "--dry-run"]
    status, out, _ = run(words, capsys)
    assert status == 0
    assert "train parity-deltanet" in out


def test_inspect_shows_the_places_of_the_states(trained, tmp_path, capsys):
    status, out, _ = run(["inspect", trained, "--out", tmp_path / "pictures", "--episodes", 2], capsys)
    assert status == 0
    assert "2 sequence(s) of 50 symbols, is the number of ones so far odd?" in out
    names = {"rates.png", "rates-by-head.png", "change.png", "ranks.png", "heads.png", "past.png", "states.png"}
    assert set(os.listdir(tmp_path / "pictures")) == names


@pytest.mark.parametrize("words", [["--questions", "3"], ["--shots", "1"], ["--source", "omniglot"]])
def test_inspect_refuses_what_is_for_images(trained, capsys, words):
    status, _, err = run(["inspect", trained, *words], capsys)
    assert status == 2
    assert f"{words[0][2:]} is for few-shot" in err
