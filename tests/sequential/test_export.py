"""`srwm export` of a run on streams, with its card."""

import json

import torch

from srwm.sequential import load_stream_model
from srwm.sequential.experiment import SEQUENTIAL

from .test_cli import run, sources, train  # noqa: F401 - fixtures
from .tiny import config


def test_an_exported_model_answers_as_its_run_does_and_its_card_says_what_was_measured(sources, tmp_path, capsys):  # noqa: F811
    assert train(sources, tmp_path / "run", capsys)[0] == 0
    status, out, _ = run(["export", tmp_path / "run", tmp_path / "model"], capsys)
    assert (status, out.strip()) == (0, str(tmp_path / "model"))
    one, other = load_stream_model(tmp_path / "run"), load_stream_model(tmp_path / "model")
    image = torch.randint(256, one.image_shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(one.observe(image, 1)[0], other.observe(image, 1)[0])
    assert one.config == other.config

    card = (tmp_path / "model" / "README.md").read_text()
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    for order in result["test"]["orders"]:
        for number, segment in enumerate(order["segments"], start=1):
            where = f"| test accuracy, {', '.join(order['sources'])}: segment {number}, {segment['source']} |"
            assert f"{where} {segment['total']['mean']:.2%} ± {segment['total']['interval']:.2%} (95%)" in card
    for words in (*sources, "4 steps in", "8 streams", "Apache-2.0", '"per_class": 4'):
        assert words in card
    assert json.loads((tmp_path / "model" / "model.json").read_text())["measured"] == result

    words = ["evaluate", tmp_path / "model", "--sets", 2, "--episodes", 4, "--device", "cpu", "--json"]
    assert json.loads(run(words, capsys)[1])["accuracy"] == result["test"]["accuracy"]


def test_the_card_says_which_images_are_negatives():
    recipe = config(stream={"sources": ("strokes", "strokes+inverted"), "image_size": 16})
    test = {"accuracy": 0.5, "interval": None, "sets": [0.5], "streams": 1, "instances": [1], "orders": []}
    common = {"step": 4, "score_step": None, "seconds": 1.0, "date": "2026-01-01", "parameters": 7}
    result = {**common, "test": test, "hardware": {"device": "an abacus"}}
    card = SEQUENTIAL.card(recipe, result, licence="CC0-1.0", half=True)
    assert "| data | Strokes (that of this library); Strokes (that of this library), as negatives |" in card
    assert "The last checkpoint. The weights are rounded to 16 bits after that test." in card
    assert "4 steps in 1 s on an abacus, seed 0, 2026-01-01" in card


def test_a_run_without_a_test_is_refused(sources, tmp_path, capsys):  # noqa: F811
    assert train(sources, tmp_path / "run", capsys, "train.total_steps=1", options=["--no-test"])[0] == 0
    status, _, err = run(["export", tmp_path / "run", tmp_path / "model"], capsys)
    assert status == 2
    assert "has not been tested yet" in err
