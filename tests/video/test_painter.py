"""The picture of a moment; what it shows is found by its colours."""

import numpy as np
import pytest

from srwm.inspect import find_matrices
from srwm.nn import SequenceModel, find_memory, memory_names
from srwm.video import Painter
from srwm.video._canvas import Canvas
from srwm.video.painter import _BARS, _CHOSEN, _GAIN, _GAME, _INK, _LOSS, _PARTS

from .small import make_matrix, make_view

BARS = np.s_[_BARS.top : _BARS.bottom, _BARS.left : _BARS.right]


def rows_of(picture, colour):
    """Where pixels of this colour are, from the top; those of a thin line are mixed with the ground."""
    return np.flatnonzero((np.abs(picture.astype(int) - colour).max(axis=-1) < 45).any(axis=1))


def test_the_game_stands_in_the_picture_pixel_by_pixel():
    view = make_view()
    picture = Painter("srwm").draw(view)
    assert picture.shape == (720, 1280, 3)
    game = picture[_GAME.top : _GAME.bottom, _GAME.left : _GAME.right]
    assert np.array_equal(game, view.picture)


def test_the_end_of_an_episode_is_written_over_the_game():
    going, over = (Painter("srwm").draw(make_view(is_last=is_last)) for is_last in (False, True))
    changed = np.flatnonzero((going != over).any(axis=(1, 2)))
    assert changed.min() > _GAME.top + _GAME.height // 2
    assert changed.max() == _GAME.bottom - 1


@pytest.mark.parametrize(("number", "height"), [(1, 720), (4, 720), (5, 838), (6, 960)])
def test_many_matrices_make_the_picture_higher_and_its_sides_even(number, height):
    matrices = [make_matrix(f"layer {place}") for place in range(1, number + 1)]
    assert Painter("srwm").draw(make_view(matrices=matrices)).shape == (height, 1280, 3)


def test_a_higher_learning_rate_is_drawn_higher():
    painter = Painter("srwm")
    for _ in range(20):
        picture = painter.draw(make_view(matrices=[make_matrix(rates=(0.2, 0.4, 0.6, 0.8))]))
    plot = picture[260:690, 600:900]
    heights = [rows_of(plot, _PARTS[part]).mean() for part in ("y", "q", "k", "beta")]
    assert heights == sorted(heights, reverse=True)
    steps = np.diff(heights)
    assert steps == pytest.approx([steps[0]] * 3, abs=2)


def test_the_change_is_drawn_in_its_parts_and_as_a_whole():
    painter = Painter("srwm")
    for step in range(1, 30):
        change = (0.1 * step, 0.2 * step, 0.2 * step, 0.4 * step)
        picture = painter.draw(make_view(matrices=[make_matrix(change=change)]))
    plot = picture[260:690, 960:1256]
    assert rows_of(plot, _INK).min() < rows_of(plot, _PARTS["beta"]).min() < rows_of(plot, _PARTS["y"]).min()


def test_what_gates_let_go_of_stands_beside_the_learning_rates(monkeypatch):
    written = []
    monkeypatch.setattr(Canvas, "write", lambda self, x, y, text, *_, **__: written.append(text) or 0)
    matrix = make_matrix(forget=(0.0025, 0.1), change=(1.0, 2.0, 2.0, 4.0, 0.5))
    Painter("srwm").draw(make_view(matrices=[matrix]))
    assert "forgets 0.25 %, 10 %" in written
    written.clear()
    Painter("srwm").draw(make_view())
    assert not [text for text in written if "forgets" in text]


def test_the_change_of_the_columns_of_the_gates_is_drawn_in_their_colour():
    painter = Painter("srwm")
    matrix = make_matrix(forget=(0.0025, 0.1), change=(3.0, 0.1, 0.1, 0.1, 1.5))
    for step in range(1, 30):
        picture = painter.draw(make_view(step=step, matrices=[matrix]))
    assert len(rows_of(picture[260:690, 960:1256], _PARTS["forget"]))


def test_the_bar_of_the_action_stands_out_and_is_as_high_as_it_is_likely():
    probabilities = np.full(15, 0.4 / 13)
    probabilities[3], probabilities[5] = 0.5, 0.1
    low, high = (
        len(rows_of(Painter("srwm").draw(make_view(action=action, probabilities=probabilities))[BARS], _CHOSEN))
        for action in (5, 3)
    )
    assert high == pytest.approx(5 * low, abs=2)


def test_rewards_are_marked_by_their_sign():
    for reward, shown, absent in ((1.0, _GAIN, _LOSS), (-1.0, _LOSS, _GAIN)):
        plot = Painter("lstm").draw(make_view(reward=reward, matrices=[]))[124:572, 600:1256]
        assert len(rows_of(plot, shown)) > 5
        assert len(rows_of(plot, absent)) == 0


def test_only_the_last_steps_are_shown(monkeypatch):
    monkeypatch.setattr("srwm.video.painter.WINDOW", 12)
    one, other = Painter("srwm"), Painter("srwm")
    for value in (-50.0, 70.0):
        one.draw(make_view(value=value))
    for step in range(12):
        pictures = [painter.draw(make_view(value=step / 100)) for painter in (one, other)]
    assert np.array_equal(*pictures)


def test_every_memory_has_learning_rates_or_a_word_on_why_not():
    for name in memory_names():
        model = SequenceModel(4, memory=name, hidden_size=4, num_heads=2)
        changing = [matrix for matrix in find_matrices(model) if matrix.kind != "fixed"]
        assert bool(changing) == (find_memory(name).instead is None), name
        assert {part for matrix in changing for part in matrix.parts} <= set(_PARTS)
    pictures = [Painter(name).draw(make_view(matrices=[])) for name in ("lstm", "fake_srwm", "somebodys:Layer")]
    assert not np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[1], pictures[2])


def test_one_learning_rate_is_drawn_for_fast_weights():
    matrix = make_matrix(rates=(0.3,), change=(2.0,), initial=0.0)
    picture = Painter("deltanet").draw(make_view(matrices=[matrix]))
    assert len(rows_of(picture[260:690, 600:900], _PARTS["fast"]))
    assert not len(rows_of(picture[260:690, 600:900], _PARTS["q"]))
