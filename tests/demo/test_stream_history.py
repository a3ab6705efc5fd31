"""A history counts right, and never grows beyond its bounds."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from srwm.demo.stream_history import INSTANCES, MAX_BINS, RECENT, RUNNING, SHOWN, History, Lived, Shown

BLANK = torch.zeros(1, 2, 2, dtype=torch.uint8)


def shown(step, *, is_right, instance=1, task=0):
    return Shown(Lived(step, task, step, instance, 0, 0 if is_right else 1), (0.5, 0.5), BLANK, False)


def history_of(answers, instances=None):
    history = History()
    for i, is_right in enumerate(answers):
        instance = 1 if instances is None else instances[i]
        history.add(shown(i + 1, is_right=is_right, instance=instance), float(i + 1))
    return history


@given(st.lists(st.booleans(), max_size=3 * RECENT))
@settings(max_examples=30)
def test_right_answers_are_counted(answers):
    history = history_of(answers)
    assert (history.steps, history.right) == (len(answers), sum(answers))
    assert history.running == (sum(answers[-RUNNING:]), len(answers[-RUNNING:]))
    assert [each.is_right for each in history.recent] == answers[-RECENT:]
    assert [each.lived.is_right for each in history.shown] == answers[-SHOWN:]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 25)), max_size=200))
@settings(max_examples=30)
def test_answers_are_told_apart_by_the_image_of_their_class(pairs):
    history = history_of([right for right, _ in pairs], [instance for _, instance in pairs])
    for place, (right, images) in enumerate(history.instances, start=1):
        those = [r for r, instance in pairs if instance == place or (place > INSTANCES and instance > INSTANCES)]
        assert (right, images) == (sum(those), len(those))


@pytest.mark.parametrize("steps", [0, 1, MAX_BINS, MAX_BINS + 1, 2 * MAX_BINS, 10 * MAX_BINS + 7])
def test_a_whole_life_is_told_in_a_bounded_number_of_stretches(steps):
    answers = [(i * i) % 7 < 4 for i in range(steps)]
    history = history_of(answers)
    assert len(history.bins) <= MAX_BINS
    first = 0
    for stretch in history.bins:
        last = first + stretch.images
        assert stretch.right == sum(answers[first:last])
        assert stretch.norm == last
        first = last
    assert first == steps
    assert all(stretch.images == history.bin_width for stretch in history.bins[:-1])


def test_its_size_is_that_of_its_bounds_after_any_number_of_images():
    history = history_of([True] * 20_000)
    assert (len(history.recent), len(history.shown), len(history.instances)) == (RECENT, SHOWN, INSTANCES + 1)
    assert MAX_BINS // 2 <= len(history.bins) <= MAX_BINS
    assert history.bin_width == 128
