"""Curves on a picture."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srwm.video._scope import (
    Scale,
    draw_band,
    draw_dashes,
    draw_line,
    draw_marks,
    fill,
    scale_from_zero,
    scale_of_rates,
)

WHITE = (255, 255, 255)


def blank(height=10, width=5):
    return np.zeros((height, width, 3), np.uint8)


def test_pixels_are_painted_as_far_as_they_are_covered():
    area = blank()
    fill(area, np.full(5, 2.5), np.full(5, 4.25), (200, 100, 0))
    assert area[:, 0, 0].tolist() == [0, 0, 100, 200, 50, 0, 0, 0, 0, 0]
    assert area[3, 4].tolist() == [200, 100, 0]


def test_what_is_half_transparent_lets_the_ground_through():
    area = blank() + np.uint8(100)
    fill(area, np.full(5, 0.0), np.full(5, 10.0), (200, 100, 0), 0.5)
    assert (area == (150, 100, 50)).all()


def test_nothing_is_painted_where_there_is_no_height():
    area = blank()
    heights = np.array([np.nan, np.nan, 1.0, 1.0, 1.0])
    fill(area, heights, heights + 2, WHITE)
    assert area[1:3, :, 0].tolist() == [[0, 0, 255, 255, 255]] * 2
    assert area[3:].max() == 0
    fill(area, np.full(5, np.nan), np.full(5, np.nan), (9, 9, 9))
    assert 9 not in area


@pytest.mark.parametrize("rows", [(-30.0, -20.0), (15.0, 40.0)])
def test_what_lies_outside_is_not_painted(rows):
    area = blank()
    fill(area, np.full(5, rows[0]), np.full(5, rows[1]), WHITE)
    assert area.max() == 0


def test_the_newest_step_stands_at_the_right_edge():
    area = blank(20, 11)
    draw_line(area, np.array([4.0, 4.0, 4.0]), 11, WHITE, 2.0)
    assert area[:, :, 0].any(axis=0).tolist() == [False] * 8 + [True] * 3
    assert (area[3:5, 8:] == 255).all()
    later = blank(20, 11)
    draw_line(later, np.array([4.0, 4.0, 4.0, 12.0]), 11, WHITE, 2.0)
    # A jump is drawn from one height to the other, without a gap.
    assert (later[4:12, 9:].max(axis=(1, 2)) == 255).all()
    assert later[12, -1, 0] > 0


def test_a_band_lies_between_its_edges():
    area = blank(20, 11)
    draw_band(area, np.full(11, 5.0), np.full(11, 9.0), 11, WHITE, 1.0)
    assert np.flatnonzero(area[:, 0, 0]).tolist() == [5, 6, 7, 8]


def test_steps_are_marked_in_their_columns():
    area = blank(20, 11)
    draw_marks(area, np.array([False, True, False, False]), 11, WHITE)
    assert np.flatnonzero(area[-1, :, 0]).tolist() == [7, 8, 9]
    assert area[0].max() == 0
    dashed = blank(20, 11)
    draw_dashes(dashed, np.array([True, False]), 11, WHITE)
    assert np.flatnonzero(dashed[0, :, 0]).tolist() == [9]
    assert 0 < (dashed[:, 9, 0] > 0).sum() < 20


def test_the_ends_of_a_scale_lie_at_the_edges_with_room_for_a_line():
    assert Scale(2.0, 4.0).rows(np.array([4.0, 3.0, 2.0]), 101).tolist() == [1.5, 50.5, 99.5]


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_scale_of_rates_holds_them(one, other):
    low, high = min(one, other), max(one, other)
    scale = scale_of_rates(low, high)
    assert scale.low - 1e-5 <= low <= high <= scale.high + 1e-5
    assert scale.low >= 0
    assert scale.high <= 1 + 1e-9


def test_the_scale_of_rates_is_narrow_where_rates_are_alike():
    for low, high, begin, end in ((0.48, 0.52, 0.45, 0.55), (0.01, 0.02, 0.0, 0.1), (0.1, 0.9, 0.0, 1.0)):
        scale = scale_of_rates(low, high)
        assert (scale.low, scale.high) == pytest.approx((begin, end))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_a_scale_holds_zero_and_all_values(values):
    scale = scale_from_zero(np.array(values), 0.1)
    assert scale.low <= min(0, *values) * (1 - 1e-6)
    assert max(0.1, *values) <= scale.high * (1 + 1e-6)


def test_a_scale_ends_at_round_numbers():
    assert scale_from_zero(np.array([3.1, -0.4]), 0.1) == Scale(-0.5, 5.0)
    assert scale_from_zero(np.array([0.0]), 0.1) == Scale(0.0, 0.1)
