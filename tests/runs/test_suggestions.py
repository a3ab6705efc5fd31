"""The right word beside a wrong one."""

import pytest

from srwm.runs.suggestions import did_you_mean

KEYS = ["model.hidden_size", "model.num_heads", "train.batch_size"]


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("model.hiden_size", "; did you mean 'model.hidden_size'?"),
        ("hidden_size", "; did you mean 'model.hidden_size'?"),
        ("hiden_size", "; did you mean 'model.hidden_size'?"),
        ("train.hidden_size", "; did you mean 'model.hidden_size'?"),
        ("optimizer.num_head", "; did you mean 'model.num_heads'?"),
        ("zzz", ""),
    ],
)
def test_the_nearest_word_is_named_and_none_that_is_far(word, sentence):
    assert did_you_mean(word, KEYS) == sentence


def test_of_two_names_with_the_same_last_part_the_first_is_meant():
    assert did_you_mean("size", ["model.size", "image.size"]) == "; did you mean 'model.size'?"


def test_words_can_come_from_a_generator():
    assert did_you_mean("starpliot", (game for game in ("maze", "starpilot"))) == "; did you mean 'starpilot'?"
