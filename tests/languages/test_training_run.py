"""Runs on languages from beginning to end, in this process."""

import io
import json
import os
import signal

import pytest
import torch
from rich.console import Console

from fewshot.tiny import fingerprint
from srwm.errors import InputError
from srwm.languages import LanguagesConfig, LanguagesTrainer, evaluate, find_task, load_tracker, train_run
from srwm.languages.evaluation import LanguagesEvaluation
from srwm.runs.config import from_json
from srwm.runs.metrics import read_metrics
from srwm.runs.results import read_part
from srwm.runs.run_folder import RunFolder

from .tiny import config

RECIPE = config(model={"dropout": 0.2}, task={"same_length": False})


def train(wanted, path, **options):
    return train_run(wanted, path, device="cpu", console=Console(file=io.StringIO()), **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody disturbed."""
    path = tmp_path_factory.mktemp("whole") / "run"
    return path, train(RECIPE, path)


def test_the_folder_holds_all_of_the_run(whole):
    path, (result, content) = whole
    assert set(os.listdir(path)) == {"config.json", "metrics.jsonl", "timing.jsonl", "checkpoints", "result.json"}
    assert (result.step, result.interrupted) == (6, False)
    folder = RunFolder.open(path, kind="languages")
    assert from_json(LanguagesConfig, folder.config) == RECIPE
    records = read_metrics(folder.metrics_path)
    assert [record["step"] for record in records] == [2, 3, 4, 6]
    assert {"train/loss", "train/accuracy", "train/sequence_accuracy", "train/gradient_norm"} <= set(records[0])
    assert folder.read_result() == json.loads(json.dumps(content))
    assert content["parameters"] == sum(p.numel() for p in load_tracker(path).parameters())


def test_the_result_is_the_test_of_the_last_weights(whole):
    path, (_, content) = whole
    again = evaluate(load_tracker(path), find_task(RECIPE.task), RECIPE.task.test_lengths, sequences=5)
    assert read_part(LanguagesEvaluation, json.loads((path / "result.json").read_text())["test"]) == again
    assert [each.lengths for each in again.by_length] == ["2-8", "12"]
    assert content["test"]["accuracy"] == again.accuracy


def test_the_same_recipe_gives_the_same_bytes_again(whole, tmp_path):
    train(RECIPE, tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(whole[0])


@pytest.mark.parametrize("step", [2, 3])
def test_a_run_that_was_interrupted_ends_as_the_unbroken_one(whole, tmp_path, monkeypatch, step):
    original = LanguagesTrainer.train_step

    def train_step(self, number):
        original(self, number)
        if number == step:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(LanguagesTrainer, "train_step", train_step)
        result, content = train(RECIPE, tmp_path / "run")
    assert (result.interrupted, result.step, content) == (True, step + 1, None)
    torch.rand(5)
    result, content = train(RECIPE, tmp_path / "run", resume=True)
    assert fingerprint(tmp_path / "run") == fingerprint(whole[0])
    assert content["test"] == whole[1][1]["test"]


VALIDATED = {"validation_lengths": ("2-8", "12"), "validate_every": 2, "validation_sequences": 8, "total_steps": 8}


def scores_of(path):
    records = read_metrics(path / "metrics.jsonl")
    return {each["step"]: each["validation/sequence_accuracy"] for each in records if "validation/12" in each}


def test_a_validation_chooses_the_weights_that_are_tested(tmp_path, monkeypatch):
    wanted = {2: 0.25, 4: 0.75, 6: 0.5, 8: 0.75}
    tensors = {}

    def validate(self):
        step = int(self._step_number)
        tensors[step] = [each.detach().clone() for each in self.model.parameters()]
        return {"validation/sequence_accuracy": wanted[step], "validation/12": wanted[step]}

    monkeypatch.setattr(LanguagesTrainer, "validate", validate)
    _, content = train(config(train=VALIDATED), tmp_path / "run")
    assert scores_of(tmp_path / "run") == wanted
    assert (content["score"], content["score_step"], content["step"]) == (0.75, 4, 8)
    loaded = list(load_tracker(tmp_path / "run").parameters())
    assert all(torch.equal(*pair) for pair in zip(loaded, tensors[4], strict=True))


def test_a_training_ends_at_the_share_it_was_to_reach(tmp_path):
    # What is asked is always the same, so that a few steps do.
    changes = {"task": {"name": "aa-star", "longest": 3}, "optimizer": {"learning_rate": 0.1, "warmup_steps": 0}}
    stopping = {**VALIDATED, "validation_lengths": ("2-3",), "stop_at": 1.0, "total_steps": 100}
    result, content = train(config(**changes, train=stopping), tmp_path / "run")
    assert result.stopped_early
    assert result.step == content["score_step"] < 100
    assert content["score"] == 1


def test_a_validated_run_that_was_interrupted_ends_as_the_unbroken_one(tmp_path, monkeypatch):
    original = LanguagesTrainer.train_step

    def train_step(self, number):
        original(self, number)
        if number == 4:
            os.kill(os.getpid(), signal.SIGINT)

    recipe = config(model={"dropout": 0.2}, train=VALIDATED)
    train(recipe, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(LanguagesTrainer, "train_step", train_step)
        train(recipe, tmp_path / "run")
    train(recipe, tmp_path / "run", resume=True)
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


def test_without_a_test_the_result_says_so(tmp_path):
    _, content = train(config(train={"total_steps": 1}), tmp_path / "run", test=False)
    assert content["test"] is None


def test_a_file_trains_and_another_one_tests(tmp_path):
    for name, bit in (("train", 1), ("test", 0)):
        line = json.dumps({"symbols": [bit] * 12, "targets": [bit] * 12})
        (tmp_path / f"{name}.jsonl").write_text(line + "\n")
    task = {"name": f"file:{tmp_path}/train.jsonl", "num_symbols": 2, "num_classes": 2}
    _, same = train(config(task=task, optimizer={"learning_rate": 0.1}), tmp_path / "same")
    other = {**task, "test_name": f"file:{tmp_path}/test.jsonl"}
    _, tested = train(config(task=other, optimizer={"learning_rate": 0.1}), tmp_path / "other")
    assert same["test"]["accuracy"] == 1
    assert tested["test"]["accuracy"] == 0


def test_a_run_goes_on_only_with_its_own_recipe(whole):
    with pytest.raises(InputError, match=r"another configuration: task\.longest was 8 and is now 9"):
        train(config(model={"dropout": 0.2}, task={"same_length": False, "longest": 9}), whole[0], resume=True)


def test_what_cannot_be_trained_leaves_no_folder(tmp_path):
    with pytest.raises(InputError, match="no task 'cooking'"):
        train(config(task={"name": "cooking"}), tmp_path / "run")
    assert not (tmp_path / "run").exists()
