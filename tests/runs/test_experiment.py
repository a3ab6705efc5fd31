"""What `srwm evaluate` may be asked for, and how an experiment refuses what makes no sense for it."""

import pytest

from srwm.errors import InputError
from srwm.runs.experiment import EvaluateOptions


def test_unless_told_otherwise_the_kind_decides_and_the_seed_is_0():
    options = EvaluateOptions()
    assert (options.seed, options.device) == (0, "auto")
    options.refuse(["split", "sets", "episodes", "data"], "is for images")


@pytest.mark.parametrize(("name", "value"), [("episodes", 5), ("sets", 0)])
def test_an_option_that_was_given_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"^--{name} is for images$"):
        EvaluateOptions(**{name: value}).refuse(["split", name], "is for images")
    EvaluateOptions(**{name: value}).refuse(["split"], "is for images")
