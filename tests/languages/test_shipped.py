"""The models of parity that come with the package: they are there, they are small, and one of the two follows it."""

import json

import pytest

import srwm
from srwm.languages import LanguagesEvaluation, evaluate, find_task
from srwm.runs.shipped import SHIPPED, shipped_models

NAMES = ["parity-deltanet", "parity-srwm"]


def measured(name) -> LanguagesEvaluation:
    """Test on other sequences than those of the card."""
    model = srwm.load(name)
    return evaluate(model, find_task(model.config.task), ("2-50", "1000"), sequences=20, seed=1)


def test_they_are_named_and_ready():
    assert shipped_models("languages") == NAMES
    assert [srwm.load(name).config.model.memory for name in NAMES] == ["deltanet", "srwm"]
    assert not any(srwm.load(name).training for name in NAMES)


def test_they_were_trained_alike():
    recipes = [srwm.load(name).config for name in NAMES]
    for part in ("seed", "task", "optimizer", "train"):
        assert getattr(recipes[0], part) == getattr(recipes[1], part)
    sizes = [(each.model.hidden_size, each.model.num_layers, each.model.num_heads) for each in recipes]
    assert sizes == [(64, 2, 4)] * 2


@pytest.mark.parametrize("name", NAMES)
def test_their_folders_are_small_and_their_cards_say_what_was_measured(name):
    files = {path.name: path for path in (SHIPPED / name).iterdir()}
    assert set(files) == {"README.md", "model.json", "weights.safetensors"}
    assert sum(path.stat().st_size for path in files.values()) < 3e5
    card = files["README.md"].read_text(encoding="utf-8")
    about = json.loads(files["model.json"].read_text(encoding="utf-8"))["measured"]
    assert about["recipe"] == name
    for row in about["test"]["by_length"]:
        assert (
            f"| test sequences right at every position, length {row['lengths']} | {row['whole']:.2%} of 200 sequences |"
            in card
        )
    assert "| task | parity, trained on lengths 2 to 50 |" in card
    assert "| licence of the weights | Apache-2.0 |" in card


def test_the_srwm_is_right_at_every_position_at_twenty_times_the_length_of_its_training():
    assert [each.whole for each in measured("parity-srwm").by_length] == [1.0, 1.0]


def test_the_deltanet_is_wrong_at_the_lengths_of_its_training_and_guesses_beyond():
    short, long = measured("parity-deltanet").by_length
    assert short.whole < 0.4
    assert long.whole == 0.0
    assert long.positions < 0.56
