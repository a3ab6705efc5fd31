import copy
import math

import pytest
from river import checks, datasets, evaluate, metrics

from srwm.estimators import InContextStreamClassifier
from srwm.runs.config import to_json
from srwm.runs.model_files import write_model
from tabular.tiny import config, network

SLOW = ("check_bounded_memory_growth",)
"""Read thousands of examples, some for each kind of data; see the nightly test."""


def _checks(*, slow):
    chosen = [c for c in checks.yield_checks(InContextStreamClassifier()) if (c.__name__ in SLOW) == slow]
    return [pytest.param(check, id=f"{number}-{check.__name__}") for number, check in enumerate(chosen)]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A model of the same kind with random weights, so that thousands of examples are soon read."""
    folder = tmp_path_factory.mktemp("models") / "small"
    recipe = config(prior={"most_classes": 10})
    write_model(
        network(prior={"most_classes": 10}),
        folder,
        kind="tabular",
        config=to_json(recipe),
        half=False,
        measured={},
        card="",
    )
    return str(folder)


@pytest.mark.parametrize("check", _checks(slow=False))
def test_river_finds_nothing_wrong(check, small):
    check(InContextStreamClassifier(small, members=1))


@pytest.mark.nightly
@pytest.mark.parametrize("check", _checks(slow=True))
def test_river_finds_nothing_wrong_on_long_streams(check, small):
    check(InContextStreamClassifier(small, members=1))


@pytest.fixture
def model():
    return InContextStreamClassifier(members=1)


def test_it_learns_a_stream_in_one_pass(model):
    metric = metrics.Accuracy()
    assert evaluate.progressive_val_score(datasets.Phishing().take(400), model, metric).get() > 0.8


def test_before_the_first_example_it_knows_no_class(model):
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_one({"a": 1.0}) is None


def test_classes_and_features_may_come_at_any_time(model):
    for number in range(12):
        model.learn_one({"a": float(number % 2)}, "even" if number % 2 else "odd")
    model.learn_one({"a": 0.0, "later": 3.0}, "new")
    chances = model.predict_proba_one({"later": 3.0, "never seen": 1.0})
    assert set(chances) == {"even", "odd", "new"}
    assert math.isclose(sum(chances.values()), 1.0)


def test_a_word_is_a_feature(model):
    for _ in range(10):
        model.learn_one({"colour": "red", "size": 1.0}, True)
        model.learn_one({"colour": "blue", "size": 1.0}, False)
    assert model.predict_one({"colour": "red", "size": 1.0}) is True
    assert model.predict_one({"colour": "blue", "size": 1.0}) is False


def test_none_and_nan_are_missing(model):
    for number in range(8):
        model.learn_one({"a": float(number % 2), "b": float(number)}, number % 2)
    answers = [model.predict_proba_one(x) for x in ({"a": 1.0}, {"a": 1.0, "b": None}, {"a": 1.0, "b": math.nan})]
    assert answers[0] == answers[1] == answers[2]


def test_an_infinite_number_is_refused_and_nothing_is_learnt(model):
    model.learn_one({"a": 1.0}, 0)
    before = copy.deepcopy(model).predict_proba_one({"a": 1.0})
    with pytest.raises(ValueError, match=r"x\['a'\] is inf; expected finite numbers, or NaN for a missing one"):
        model.learn_one({"a": math.inf}, 1)
    assert model.predict_proba_one({"a": 1.0}) == before


def test_one_class_more_than_the_head_has_is_refused(model):
    for number in range(10):
        model.learn_one({"a": float(number)}, number)
    with pytest.raises(
        ValueError, match=r"y=10 is one class more than model='tabular' tells apart; expected 10 at most"
    ):
        model.learn_one({"a": 10.0}, 10)
    assert set(model.predict_proba_one({"a": 1.0})) == set(range(10))


def test_a_model_for_images_is_refused():
    with pytest.raises(ValueError, match="model='omniglot-1shot' learns images; expected a model for feature vectors"):
        InContextStreamClassifier(model="omniglot-1shot").learn_one({"a": 1.0}, 0)
