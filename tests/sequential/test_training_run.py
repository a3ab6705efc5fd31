"""Runs on streams from beginning to end, in this process."""

import io
import json
import os
import signal

import pytest
import torch
from rich.console import Console

from fewshot.tiny import fingerprint, write_images
from srwm.errors import InputError
from srwm.runs.config import from_json
from srwm.runs.metrics import read_metrics
from srwm.runs.results import read_part
from srwm.runs.run_folder import RunFolder
from srwm.sequential import (
    SequentialConfig,
    SequentialTrainer,
    evaluate,
    load_bank,
    load_stream_model,
    train_run,
)
from srwm.sequential.evaluation import StreamEvaluation

from .tiny import config


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return tuple(f"folder:{write_images(tmp_path_factory.mktemp(name) / name, per_class=6)}" for name in ("one", "two"))


def recipe(sources, *, stream=None, train=None, **parts):
    dropout = {"dropout": 0.2, "encoder_dropout": 0.2}
    return config(stream={"sources": sources, **(stream or {})}, model=dropout, train=train or {}, **parts)


def train(wanted, path, **options):
    return train_run(wanted, path, device="cpu", console=Console(file=io.StringIO()), **options)


@pytest.fixture(scope="module")
def whole(sources, tmp_path_factory):
    """A run that nobody disturbed."""
    path = tmp_path_factory.mktemp("whole") / "run"
    return path, train(recipe(sources), path)


def test_the_folder_holds_all_of_the_run(whole, sources):
    path, (result, content) = whole
    assert set(os.listdir(path)) == {"config.json", "metrics.jsonl", "timing.jsonl", "checkpoints", "result.json"}
    assert (result.step, result.interrupted) == (6, False)
    folder = RunFolder.open(path, kind="sequential")
    assert from_json(SequentialConfig, folder.config) == recipe(sources)
    records = read_metrics(folder.metrics_path)
    assert [record["step"] for record in records] == [2, 3, 4, 6]
    assert {"train/one/k1", "train/two/k2"} <= set(records[0])
    assert {"validation/accuracy", "validation/one/k1", "validation/two/accuracy"} <= set(records[1])
    assert folder.read_result() == json.loads(json.dumps(content))
    assert content["parameters"] == sum(p.numel() for p in load_stream_model(path).parameters())


def test_the_result_is_the_test_of_the_best_checkpoint(whole, sources):
    path, (_, content) = whole
    again = evaluate(load_stream_model(path), load_bank(recipe(sources).stream, "test"), sets=2, streams=6)
    assert read_part(StreamEvaluation, json.loads((path / "result.json").read_text())["test"]) == again
    assert again.orders[1].sources == ("two", "one")
    assert content["test"]["accuracy"] == again.accuracy


def test_the_same_recipe_gives_the_same_bytes_again(whole, sources, tmp_path):
    train(recipe(sources), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(whole[0])


@pytest.mark.parametrize("step", [3, 4])
def test_a_run_that_was_interrupted_ends_as_the_unbroken_one(whole, sources, tmp_path, monkeypatch, step):
    original = SequentialTrainer.train_step

    def train_step(self, number):
        original(self, number)
        if number == step:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(SequentialTrainer, "train_step", train_step)
        result, content = train(recipe(sources), tmp_path / "run")
    assert (result.interrupted, result.step, content) == (True, step + 1, None)
    torch.rand(5)
    result, content = train(recipe(sources), tmp_path / "run", resume=True)
    assert fingerprint(tmp_path / "run") == fingerprint(whole[0])
    assert content["test"] == whole[1][1]["test"]


def test_without_a_test_the_result_says_so(sources, tmp_path):
    _, content = train(recipe(sources, train={"total_steps": 1}), tmp_path / "run", test=False)
    assert content["test"] is None


def test_delayed_labels_without_a_change_of_data_set_train_too(sources, tmp_path):
    one = recipe(sources[:1], train={"total_steps": 1})
    _, content = train(one, tmp_path / "run")
    (order,) = content["test"]["orders"]
    assert order["sources"] == ("one",)
    assert len(order["curve"]) == 12


def test_a_run_goes_on_only_with_its_own_recipe(whole, sources):
    with pytest.raises(InputError, match=r"another configuration: stream\.ways was 3 and is now 4"):
        train(recipe(sources, stream={"ways": 4}), whole[0], resume=True)


def test_what_cannot_be_trained_leaves_no_folder(sources, tmp_path):
    with pytest.raises(InputError, match="has 4 classes; 5-way episodes need at least 5"):
        train(recipe(sources, stream={"ways": 5}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
