import srwm.rl.procgen


def test_public_names_are_pinned():
    assert srwm.rl.procgen.__all__ == [
        "ACTIONS",
        "EASY_SPLITS",
        "FORCE_RESET",
        "FRAME_SHAPE",
        "GAMES",
        "GAMES_WITH",
        "MEMORY_SPLITS",
        "NUM_ACTIONS",
        "Distribution",
        "Info",
        "LevelPools",
        "LevelRange",
        "LevelSplits",
        "Observation",
        "Pool",
        "PoolOptions",
        "VideoPool",
        "aggregate",
        "normalised_score",
        "splits_of",
    ]
    assert all(hasattr(srwm.rl.procgen, name) for name in srwm.rl.procgen.__all__)
