"""What the loop is asked for: its defaults, and what it refuses."""

import dataclasses

import pytest

from srwm.errors import InputError
from srwm.runs.loop import LoopOptions

WHOLE_NUMBERS = ["total_steps", "log_every", "validate_every", "checkpoint_every", "keep_checkpoints", "items_per_step"]


def test_who_names_only_the_steps_gets_the_usual_pace():
    options = LoopOptions(total_steps=7)
    assert (options.log_every, options.validate_every, options.checkpoint_every) == (100, 1000, 1000)
    assert (options.keep_checkpoints, options.items_per_step, options.item) == (2, 1, "steps")
    assert (options.score, options.stop_at, options.tensorboard) == ("validation/accuracy", None, False)


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_no_step_at_all_gets_a_sentence_and_one_is_enough(name):
    options = LoopOptions(total_steps=7)
    with pytest.raises(InputError, match=f"{name} is 0; .* at least 1"):
        dataclasses.replace(options, **{name: 0})
    assert getattr(dataclasses.replace(options, **{name: 1}), name) == 1
