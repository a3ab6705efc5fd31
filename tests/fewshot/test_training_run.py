"""Runs from beginning to end, in this process."""

import io
import json
import os
import signal

import pytest
import torch
from rich.console import Console

from srwm.errors import InputError
from srwm.fewshot import FewShotConfig, evaluate, load_model, train_run
from srwm.fewshot.images import image_loader
from srwm.fewshot.trainer import FewShotTrainer
from srwm.runs.config import from_json
from srwm.runs.metrics import read_metrics
from srwm.runs.run_folder import RunFolder

from .tiny import config, fingerprint, write_images

DROPOUT = {"dropout": 0.2, "encoder_dropout": 0.2}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return f"folder:{write_images(tmp_path_factory.mktemp('images'))}"


def recipe(source, *, task=None, train=None, **parts):
    return config(task={"source": source, "augment": 0.5, **(task or {})}, model=DROPOUT, train=train or {}, **parts)


def train(wanted, path, **options):
    return train_run(wanted, path, device="cpu", console=Console(file=io.StringIO()), **options)


def interrupt_after(step, monkeypatch):
    """Let Ctrl-C come during a step; `None` takes it away."""
    original = FewShotTrainer.train_step

    def train_step(self, number):
        original(self, number)
        if number == step:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(FewShotTrainer, "train_step", train_step)


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """A run that nobody disturbed."""
    path = tmp_path_factory.mktemp("whole") / "run"
    return path, train(recipe(source), path)


def test_the_folder_holds_all_of_the_run(whole, source):
    path, (result, content) = whole
    names = {"config.json", "metrics.jsonl", "timing.jsonl", "checkpoints", "result.json"}
    assert set(os.listdir(path)) == names
    assert (result.step, result.interrupted) == (6, False)
    folder = RunFolder.open(path, kind="few-shot")
    assert from_json(FewShotConfig, folder.config) == recipe(source)
    assert [record["step"] for record in read_metrics(folder.metrics_path)] == [2, 3, 4, 6]
    assert folder.read_result() == json.loads(json.dumps(content))
    assert content["hardware"]["device"]
    assert content["parameters"] == sum(p.numel() for p in load_model(path).parameters())


def test_the_result_is_the_test_of_the_best_checkpoint(whole, source):
    path, (_, content) = whole
    task = recipe(source).task
    images = image_loader(task, None)("test")
    again = evaluate(load_model(path), images, task, sets=2, episodes=10)
    assert content["test"]["accuracy"] == again.accuracy
    assert tuple(content["test"]["sets"]) == again.sets
    assert images.name.endswith("/test")


def test_the_same_recipe_gives_the_same_bytes_again(whole, source, tmp_path):
    train(recipe(source), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(whole[0])


@pytest.mark.parametrize("step", [3, 4])
def test_a_run_that_was_interrupted_ends_as_the_unbroken_one(whole, source, tmp_path, monkeypatch, step):
    """With dropout and augmentation; on a log line, and between two."""
    path = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupt_after(step, patch)
        result, content = train(recipe(source), path)
    assert (result.interrupted, result.step, content) == (True, step + 1, None)
    assert not (path / "result.json").exists()
    torch.rand(5)
    result, content = train(recipe(source), path, resume=True)
    assert result.step == 6
    assert fingerprint(path) == fingerprint(whole[0])
    assert content["test"] == whole[1][1]["test"]


def test_more_steps_can_be_added_to_a_run(source, whole, tmp_path):
    train(recipe(source, train={"total_steps": 4}), tmp_path / "run", test=False)
    result, _ = train(recipe(source), tmp_path / "run", resume=True, test=False)
    assert result.step == 6
    assert fingerprint(tmp_path / "run")[2] == fingerprint(whole[0])[2]


def test_without_a_test_the_result_says_so(source, tmp_path):
    _, content = train(recipe(source, train={"total_steps": 1}), tmp_path / "run", test=False)
    assert content["test"] is None


def test_a_single_test_set_is_enough(source, tmp_path):
    _, content = train(recipe(source, train={"total_steps": 1, "test_sets": 1}), tmp_path / "run")
    assert content["test"]["interval_sets"] is None
    assert json.loads((tmp_path / "run" / "result.json").read_text())["test"]["interval_sets"] is None


def test_a_run_stops_at_the_accuracy_that_is_asked_for(source, tmp_path):
    result, content = train(recipe(source, train={"stop_at": 0.05}), tmp_path / "run", test=False)
    assert (result.stopped_early, result.step) == (True, 3)
    assert content["step"] == 3


def test_a_run_is_not_written_over(whole, source):
    before = fingerprint(whole[0])
    with pytest.raises(InputError, match="already holds a run; go on with it by --resume"):
        train(recipe(source), whole[0])
    assert fingerprint(whole[0]) == before


def test_a_run_goes_on_only_with_its_own_recipe(whole, source):
    with pytest.raises(InputError, match=r"another configuration: task\.ways was 3 and is now 4"):
        train(recipe(source, task={"ways": 4}), whole[0], resume=True)


def test_what_cannot_be_trained_leaves_no_folder(source, tmp_path):
    with pytest.raises(InputError, match="has 4 classes; 5-way episodes need at least 5"):
        train(recipe(source, task={"ways": 5}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_trained_model_knows_the_shape_of_its_images(whole):
    assert load_model(whole[0]).image_shape == (1, 16, 16)
