import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from srwm.data.strokes import draw_strokes
from srwm.errors import InputError
from srwm.estimators import InContextClassifier
from srwm.runs.config import to_json
from srwm.runs.model_files import write_model
from srwm.tabular import TabularModel
from tabular.tiny import config

FAILS: dict[str, str] = {}
"""scikit-learn's checks that do not apply, and why: none."""


@parametrize_with_checks([InContextClassifier(members=2)], expected_failed_checks=lambda estimator: FAILS)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def test_it_learns_from_thirty_examples_without_being_told_the_scale(wine):
    X, y = wine
    assert InContextClassifier().fit(X[:30], y[:30]).score(X[30:], y[30:]) > 0.9


def test_scaling_before_it_changes_nothing(wine):
    X, y = wine
    plain = InContextClassifier(members=2).fit(X[:30], y[:30]).predict_proba(X[30:])
    scaled = make_pipeline(StandardScaler(), InContextClassifier(members=2)).fit(X[:30], y[:30])
    assert np.allclose(scaled.predict_proba(X[30:]), plain, atol=1e-6)


def test_it_stands_where_other_classifiers_stand(wine):
    X, y = wine
    words = np.array(["red", "rose", "white"])[y]
    assert cross_val_score(InContextClassifier(members=2), X, words, cv=3).min() > 0.9


def test_parts_teach_what_the_whole_does(wine):
    X, y = wine
    parts = InContextClassifier()
    for first in range(0, 60, 20):
        parts.partial_fit(X[first : first + 20], y[first : first + 20], classes=[0, 1, 2])
    assert parts.score(X[60:], y[60:]) > 0.9


def test_after_a_fit_parts_go_on(wine):
    X, y = wine
    model = InContextClassifier(members=2).fit(X[:10], y[:10])
    before = model.predict_proba(X[60:])
    model.partial_fit(X[10:60], y[10:60])
    assert model.score(X[60:], y[60:]) > 0.9
    assert not np.allclose(model.predict_proba(X[60:]), before)


def test_features_may_be_missing(wine):
    X, y = wine
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    assert InContextClassifier().fit(holes[:60], y[:60]).score(holes[60:], y[60:]) > 0.85


def test_a_class_without_an_example_has_no_chance(wine):
    X, y = wine
    few = np.flatnonzero(y < 2)[:10]
    chances = InContextClassifier(members=2).partial_fit(X[few], y[few], classes=[0, 1, 2]).predict_proba(X)
    assert not chances[:, 2].any()
    assert np.allclose(chances.sum(axis=1), 1)


# What NearestCentroid says of pixels that never change.
@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_ has at least 1 zero")
def test_more_features_than_it_was_trained_with_are_taken():
    X, y = load_digits(return_X_y=True)
    wide = np.concatenate([X, X**2, -X], axis=1)[y < 3]
    y = y[y < 3]
    nearest_mean = make_pipeline(StandardScaler(), NearestCentroid()).fit(wide[:40], y[:40]).score(wide[40:], y[40:])
    assert InContextClassifier().fit(wide[:40], y[:40]).score(wide[40:], y[40:]) > nearest_mean - 0.02


def test_more_classes_than_the_head_has_are_refused_by_number():
    X = np.random.default_rng(0).normal(size=(22, 3))
    with pytest.raises(ValueError, match=r"y has 11 classes; expected 10 at most, .*--set prior\.most_classes=N"):
        InContextClassifier().fit(X, np.arange(22) % 11)
    with pytest.raises(ValueError, match="y has 11 classes; expected 10 at most"):
        InContextClassifier().partial_fit(X, np.arange(22) % 2, classes=range(11))


def test_a_class_that_was_not_announced_is_refused():
    X, y = load_iris(return_X_y=True)
    model = InContextClassifier(members=1).partial_fit(X[:60], y[:60], classes=[0, 1])
    with pytest.raises(ValueError, match="expected the classes of the first call"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="are others than before"):
        model.partial_fit(X[:60], y[:60], classes=[0, 1, 2])


def test_what_is_saved_is_the_state_and_not_the_network():
    X, y = load_iris(return_X_y=True)
    model = InContextClassifier(members=2).fit(X[::3], y[::3])
    saved = pickle.dumps(model)
    assert len(saved) < 500_000
    assert np.array_equal(pickle.loads(saved).predict_proba(X), model.predict_proba(X))  # noqa: S301 - our own


def test_the_seed_decides_what_the_members_do():
    X, y = load_iris(return_X_y=True)
    first, again, other = (
        InContextClassifier(members=1, random_state=seed).fit(X[::3], y[::3]).predict_proba(X) for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_model_for_images_learns_images_flat_or_not():
    drawn = draw_strokes("test", classes=3, per_class=6)
    images, labels = drawn.images.numpy(), np.repeat(["a", "b", "c"], 6)
    model = InContextClassifier(model="omniglot-1shot").fit(images[::2], labels[::2])
    assert model.score(images[1::2], labels[1::2]) > 0.8
    flat = clone(model).fit(images[::2].reshape(9, -1) / 255, labels[::2])
    assert np.allclose(flat.predict_proba(images / 255), model.predict_proba(images), atol=1e-5)
    with pytest.raises(ValueError, match=r"expected uint8, or floats from 0 to 1"):
        clone(model).fit(images[::2].astype(float), labels[::2])
    with pytest.raises(ValueError, match=r"X has 4 numbers an image; expected 784"):
        clone(model).fit(np.zeros((9, 4)), labels[::2])


@pytest.mark.parametrize("name", ["nobody", "strokes-stream"])
def test_a_model_that_is_not_there_or_of_another_kind_is_refused(name):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match=name):
        InContextClassifier(model=name).fit(X, y)


def test_a_model_that_was_trained_anew_is_loaded_anew_and_what_the_old_one_learnt_is_refused(tmp_path):
    X, y = load_iris(return_X_y=True)

    def write(seed):
        torch.manual_seed(seed)
        recipe = config(prior={"most_classes": 3})
        model = TabularModel(recipe)
        write_model(model, tmp_path, kind="tabular", config=to_json(recipe), half=False, measured={}, card="")

    def fitted():
        return InContextClassifier(str(tmp_path), members=1).fit(X[::3], y[::3])

    write(0)
    old = fitted()
    before = old.predict_proba(X)
    write(1)
    assert not np.allclose(fitted().predict_proba(X), before)
    with pytest.raises(ValueError, match="has other weights than those that learnt these examples; fit again"):
        old.predict_proba(X)
    with pytest.raises(ValueError, match="fit again"):
        old.partial_fit(X[:3], y[:3])
    write(0)
    assert np.array_equal(old.predict_proba(X), before)
    assert np.array_equal(old.set_params(members=1).fit(X[::3], y[::3]).predict_proba(X), before)
