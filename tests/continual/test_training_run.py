"""Runs of continual learning from beginning to end, in this process."""

import io
import json
import os
import signal
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from fewshot.tiny import fingerprint, write_images
from srwm.continual import (
    ContinualConfig,
    ContinualTrainer,
    evaluate_orders,
    load_bank,
    load_continual_model,
    train_run,
)
from srwm.continual.measures import ContinualEvaluation
from srwm.errors import InputError
from srwm.runs.config import from_json
from srwm.runs.metrics import read_metrics
from srwm.runs.results import read_part
from srwm.runs.run_folder import RunFolder

from .tiny import config


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return tuple(f"folder:{write_images(tmp_path_factory.mktemp(name) / name, per_class=6)}" for name in ("one", "two"))


def recipe(sources, *, tasks=None, train=None, **parts):
    dropout = {"dropout": 0.2, "encoder_dropout": 0.2}
    tasks = {"sources": sources, "tasks": 2, "replays": 2, **(tasks or {})}
    return config(tasks=tasks, model=dropout, train=train or {}, **parts)


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
    folder = RunFolder.open(path, kind="continual")
    assert from_json(ContinualConfig, folder.config) == recipe(sources)
    records = read_metrics(folder.metrics_path)
    assert {"train/task1_after1", "train/task1_after2", "train/task2_after2"} <= set(records[0])
    assert {"validation/accuracy", "validation/accuracy_when_learnt"} <= set(records[1])
    assert folder.read_result() == json.loads(json.dumps(content))
    assert content["parameters"] == sum(p.numel() for p in load_continual_model(path).parameters())


def test_the_result_is_the_test_of_the_best_checkpoint(whole, sources):
    path, (_, content) = whole
    tasks = recipe(sources).tasks
    again = evaluate_orders(load_continual_model(path), load_bank(tasks, "test"), tasks, sequences=6)
    assert read_part(ContinualEvaluation, json.loads((path / "result.json").read_text())["test"]) == again
    assert [order.tasks for order in again.orders] == [("one", "two"), ("two", "one")]
    assert content["test"]["accuracy"] == again.accuracy


def test_the_same_recipe_gives_the_same_bytes_again_and_another_seed_does_not(whole, sources, tmp_path):
    train(recipe(sources), tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(whole[0])
    train(recipe(sources, seed=1), tmp_path / "other")
    assert fingerprint(tmp_path / "other") != fingerprint(whole[0])


@pytest.mark.parametrize("step", [3, 4])
def test_a_run_that_was_interrupted_ends_as_the_unbroken_one(whole, sources, tmp_path, monkeypatch, step):
    original = ContinualTrainer.train_step

    def train_step(self, number):
        original(self, number)
        if number == step:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(ContinualTrainer, "train_step", train_step)
        result, content = train(recipe(sources), tmp_path / "run")
    assert (result.interrupted, result.step, content) == (True, step + 1, None)
    torch.rand(5)
    result, content = train(recipe(sources), tmp_path / "run", resume=True)
    assert fingerprint(tmp_path / "run") == fingerprint(whole[0])
    assert content["test"] == whole[1][1]["test"]


def test_classes_to_train_to_validate_and_to_test_on_are_different_ones(sources):
    tasks = recipe(sources).tasks
    names = {part: load_bank(tasks, part).classes for part in ("train", "validation", "test")}
    for number in range(2):
        found = [set(names[part][number].class_names) for part in names]
        assert all(found)
        assert sum(map(len, found)) == len(set.union(*found))


def test_fine_tuning_begins_with_the_weights_of_another_run(whole, sources, tmp_path):
    start = {"tasks": {"tasks": 1, "classes": 4}, "train": {"total_steps": 1, "init_from": str(whole[0])}}
    changed = recipe(sources, **start, optimizer={"learning_rate": 0.0})
    train(changed, tmp_path / "run", test=False)
    one, other = load_continual_model(whole[0]), load_continual_model(tmp_path / "run")
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_weights_that_do_not_fit_are_refused(whole, sources, tmp_path):
    more = recipe(sources, tasks={"tasks": 4}, train={"init_from": str(whole[0])})
    with pytest.raises(InputError, match=r"init_from=.* does not fit: its sequence\..* must\s+agree in tasks\.classes"):
        train(more, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="there is no model"):
        train(recipe(sources, train={"init_from": str(tmp_path / "nowhere")}), tmp_path / "run")


def test_without_a_test_the_result_says_so(sources, tmp_path):
    _, content = train(recipe(sources, train={"total_steps": 1}), tmp_path / "run", test=False)
    assert content["test"] is None


def test_sequences_that_go_on_train_too(sources, tmp_path):
    parts = {"tasks": {"labels": "domain_incremental", "replays": 1}, "train": {"carry_state_prob": 0.9}}
    train(recipe(sources, **parts), tmp_path / "run")
    records = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert all("train/accuracy_earlier" in record for record in records if "train/loss" in record)


def test_what_cannot_be_trained_leaves_no_folder(sources, tmp_path):
    with pytest.raises(InputError, match="has 4 classes; 5-way episodes need at least 5"):
        train(recipe(sources, tasks={"ways": 5}), tmp_path / "run")
    with pytest.raises(InputError, match="twice; expected different sources"):
        train(recipe((sources[0], sources[0])), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_goes_on_only_with_its_own_recipe(whole, sources):
    with pytest.raises(InputError, match=r"another configuration: loss\.backward was 1\.0 and is now 0\.0"):
        train(recipe(sources, loss=replace(config().loss, backward=0.0)), whole[0], resume=True)
