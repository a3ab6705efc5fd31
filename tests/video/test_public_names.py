import srwm.video


def test_the_public_names_are_these():
    names = ["FilmedEpisode", "MatrixView", "Painter", "Video", "View", "draw_levels", "film", "play"]
    assert srwm.video.__all__ == names
    assert all(hasattr(srwm.video, name) for name in names)
