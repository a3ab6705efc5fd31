import srwm.deploy


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
        "write_folder",
    ]
