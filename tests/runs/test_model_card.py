"""The card of a trained model."""

import json
from dataclasses import dataclass

import pytest

from srwm.runs.model_card import model_card


@dataclass(frozen=True)
class Config:
    """A recipe."""

    recipe: str = "tiny"
    seed: int = 3


def card(half=False, score_step=1200):
    result = {
        "hardware": {"device": "CPU"},
        "step": 30_000,
        "seconds": 4_321.4,
        "date": "2026-11-01",
        "parameters": 98_765,
        "score_step": score_step,
    }
    words = {"about": "It reads.", "rows": {"classes": "ten"}, "caution": "It errs.", "licence": "CC0", "half": half}
    return model_card(Config(), result, **words)


def test_a_card_says_what_was_trained_how_long_on_what_and_under_which_licence():
    text = card()
    assert text.startswith("# tiny\n\nIt reads.\n")
    for line in (
        "| classes | ten |",
        "| training | 30,000 steps in 4,321 s on CPU, seed 3, 2026-11-01 |",
        "| parameters | 98,765 |",
        "| licence of the weights | CC0 |",
    ):
        assert f"\n{line}\n" in text


@pytest.mark.parametrize(
    ("score_step", "sentence"),
    [(None, "The last checkpoint."), (1200, "The best checkpoint in validation, at step 1,200.")],
)
def test_a_card_says_which_checkpoint_it_is(score_step, sentence):
    assert f"\n{sentence} It errs. The whole recipe:\n" in card(score_step=score_step)


def test_a_card_says_that_weights_were_rounded_only_if_they_were():
    sentence = "The weights are rounded to 16 bits after that test."
    assert sentence in card(half=True)
    assert sentence not in card()


def test_a_card_holds_the_whole_recipe():
    recipe = card().split("```json\n")[1].split("```")[0]
    assert json.loads(recipe) == {"recipe": "tiny", "seed": 3}
