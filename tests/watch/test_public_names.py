import srwm.watch


def test_the_public_names_are_these():
    names = ["FilmedEpisode", "MatrixView", "Painter", "Video", "View", "draw_levels", "film", "play"]
    assert srwm.watch.__all__ == names
    assert all(hasattr(srwm.watch, name) for name in names)
