import doctest

import srwm.deploy
import srwm.deploy.steps


def test_public_names_are_pinned():
    assert srwm.deploy.__all__ == [
        "FORMATS",
        "TOLERANCE",
        "Difference",
        "Format",
        "Step",
        "check_free",
        "largest_difference",
        "load_step",
        "step_of",
        "trace",
        "watched_step_of",
        "write_folder",
    ]


def test_the_example_in_the_docstring_is_right():
    assert doctest.testmod(srwm.deploy.steps) == (0, 5)
