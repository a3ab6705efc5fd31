"""The model of feature vectors that comes with the package: it is small, and it learns what it has never seen."""

import json

import numpy as np
import pytest
from sklearn import datasets
from sklearn.neighbors import NearestCentroid

import srwm
from srwm.estimators import InContextClassifier
from srwm.runs.shipped import SHIPPED, shipped_models
from srwm.tabular import TabularModel, evaluate

NAME = "tabular"
FOLDER = SHIPPED / NAME


@pytest.fixture(scope="module")
def model():
    return srwm.load(NAME)


def test_it_is_named_and_ready(model):
    assert shipped_models("tabular") == [NAME]
    assert isinstance(model, TabularModel)
    assert not model.training
    assert (model.classes, model.config.model.memory) == (10, "srwm")
    assert model.config.model.memory_options["key_map"] == "l2"


def test_its_folder_is_small():
    files = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert set(files) == {"README.md", "model.json", "weights.safetensors"}
    assert sum(files.values()) < 1e6


def test_its_card_says_task_accuracy_and_licence():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    measured = json.loads((FOLDER / "model.json").read_text(encoding="utf-8"))["measured"]
    assert "| task | random tasks, up to 100 features and 10 classes |" in card
    assert f"| test accuracy | {measured['test']['accuracy']:.2%} ± " in card
    assert "| licence of the weights | Apache-2.0 |" in card


def test_on_random_tasks_it_is_ahead_of_nearest_mean(model):
    tested = evaluate(model, model.config, tasks=150, seed=5)
    assert tested.accuracy > tested.nearest_mean + 0.005


def test_on_real_data_it_is_within_a_point_of_nearest_mean():
    ours, nearest = [], []
    for name in ("iris", "wine", "breast_cancer"):
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        for draw in range(4):
            order = np.random.default_rng(draw).permutation(len(x))
            support, query = order[:20], order[20:]
            scale = x[support].mean(axis=0), x[support].std(axis=0)
            z = (x - scale[0]) / scale[1]
            ours.append(InContextClassifier(members=4).fit(x[support], y[support]).score(x[query], y[query]))
            nearest.append(NearestCentroid().fit(z[support], y[support]).score(z[query], y[query]))
    assert np.mean(ours) > np.mean(nearest) - 0.01
