"""Runs on feature vectors from beginning to end, in this process."""

import io
import json
import os
import signal

import numpy as np
import pytest
import torch
from rich.console import Console

from fewshot.tiny import fingerprint
from srwm.cli import main
from srwm.data import import_features
from srwm.errors import InputError
from srwm.runs.devices import choose_device
from srwm.tabular import FeaturesConfig, load_tabular
from srwm.tabular.experiment import TABULAR
from srwm.tabular.trainer import TabularTrainer

from .tiny import config, network

RECIPE = config()


def train(wanted, path, **options):
    return TABULAR.train_run(wanted, path, device="cpu", console=Console(file=io.StringIO()), **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody disturbed."""
    path = tmp_path_factory.mktemp("whole") / "run"
    return path, train(RECIPE, path)


@pytest.fixture
def packed(tmp_path):
    """Vectors of twelve classes that lie far apart, as a pack."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(12), 10)
    features = 6 * rng.normal(size=(12, 7))[labels] + rng.normal(size=(120, 7))
    np.savez(tmp_path / "mine.npz", features=features.astype(np.float32), labels=labels)
    import_features([tmp_path / "mine.npz"], "mine", tmp_path / "data")
    return tmp_path / "data"


def test_the_result_is_the_test_of_the_last_weights(whole):
    path, (result, content) = whole
    assert (result.step, result.interrupted) == (6, False)
    options = TABULAR.evaluate_options()
    again = TABULAR.test(load_tabular(path), RECIPE, options)
    assert json.loads((path / "result.json").read_text())["test"] == again
    assert {"accuracy", "nearest mean/accuracy", "5 examples/accuracy", "interval", "loss"} <= set(again)
    assert content["parameters"] == sum(p.numel() for p in load_tabular(path).parameters())


def test_a_run_that_was_interrupted_ends_as_the_unbroken_one(whole, tmp_path, monkeypatch):
    original = TabularTrainer.train_step

    def train_step(self, number):
        original(self, number)
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(TabularTrainer, "train_step", train_step)
        result, content = train(RECIPE, tmp_path / "run")
    assert (result.interrupted, result.step, content) == (True, 3, None)
    torch.rand(5)
    _, content = train(RECIPE, tmp_path / "run", resume=True)
    assert fingerprint(tmp_path / "run") == fingerprint(whole[0])
    assert content["test"] == whole[1][1]["test"]


def test_an_exported_model_is_the_one_of_the_run(whole, tmp_path):
    assert main(["export", str(whole[0]), str(tmp_path / "model")]) == 0
    assert "up to 6 features and 5 classes" in (tmp_path / "model" / "README.md").read_text()
    ours, exported = load_tabular(whole[0]), load_tabular(tmp_path / "model")
    for a, b in zip(ours.parameters(), exported.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-3)


def test_training_makes_the_loss_fall(tmp_path):
    longer = config(
        train={"total_steps": 60, "batch_size": 16, "log_every": 20, "checkpoint_every": 60},
        optimizer={"learning_rate": 1e-2},
    )
    train(longer, tmp_path / "run", test=False)
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["train/loss"] < records[0]["train/loss"] - 0.05


def test_a_pack_of_features_trains_and_new_classes_of_it_test(packed, tmp_path):
    recipe = config(features=FeaturesConfig("mine", ways=2, shots=2, queries=4))
    _, content = train(recipe, tmp_path / "run", data=packed)
    # Classes far apart are told apart at once, by what the scores are added to.
    assert content["test"]["nearest mean/accuracy"] > 0.9
    assert content["test"]["accuracy"] > 0.9
    assert content["test"]["tasks"] == 5.0
    assert main(["evaluate", str(tmp_path / "run"), "--data", str(packed), "--device", "cpu", "--episodes", "3"]) == 0


def test_a_training_begins_with_the_weights_of_another(whole, tmp_path):
    begun = TabularTrainer(config(initial=str(whole[0])), choose_device("cpu"))
    for a, b in zip(begun.model.parameters(), load_tabular(whole[0]).parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(InputError, match="there is no model 'nobody'"):
        TabularTrainer(config(initial="nobody"), choose_device("cpu"))


def test_what_cannot_be_trained_leaves_no_folder(tmp_path):
    with pytest.raises(InputError, match="there is no pack of features 'mine'"):
        train(config(features=FeaturesConfig("mine")), tmp_path / "run", data=tmp_path)
    assert not (tmp_path / "run").exists()


def test_more_ways_than_the_head_has_are_refused():
    with pytest.raises(ValueError, match=r"features\.ways=6; expected 5 \(prior\.most_classes\) at most"):
        config(features=FeaturesConfig("mine", ways=6))


def test_random_tasks_have_no_split():
    with pytest.raises(InputError, match="--split is for packs of features"):
        TABULAR.test(network(), RECIPE, TABULAR.evaluate_options(split="validation"))
