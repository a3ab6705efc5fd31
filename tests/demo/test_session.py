"""What a session shows is a function of its examples alone, however they came about."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from srwm.demo.bounds import Busy
from srwm.demo.drawing import LOOKS, draw_image
from srwm.demo.learner import DrawingLearner
from srwm.demo.session import MAX_EXAMPLES, MAX_TASKS, Session, Sessions, class_names
from srwm.errors import InputError

from .small import SHAPE, STROKES, WAYS, small_model

LEARNER = DrawingLearner(small_model())
IMAGES = [draw_image(strokes, LOOKS["strokes"], SHAPE) for strokes in STROKES]


def same(one, other):
    """Whether two moments are equal to the last bit."""
    pairs = zip(one.layers, other.layers, strict=True)
    return all(torch.equal(a.change, b.change) for a, b in pairs)


def taught(*labels):
    session = Session(LEARNER)
    for label in labels:
        session.teach(label, IMAGES[label])
    return session


def test_moments_are_kept_and_exact():
    session, shorter = taught(0, 1, 2, 3), taught(0, 1)
    assert same(session.moment(2), shorter.moment(2))
    assert session.look(IMAGES[4], 2, None)[0] == shorter.look(IMAGES[4], 2, None)[0]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.data())
@settings(max_examples=15)
def test_forgetting_an_example_is_as_if_it_had_never_been_taught(labels, data):
    session = taught(*labels)
    gone = data.draw(st.integers(0, len(labels) - 1))
    session.forget(session.examples[gone].number)
    never = taught(*labels[:gone], *labels[gone + 1 :])
    assert [example.label for example in session.examples] == [example.label for example in never.examples]
    assert all(same(a, b) for a, b in zip(session.moments, never.moments, strict=True))


def test_numbers_are_never_given_twice():
    session = taught(0, 1, 2)
    session.forget(3)
    session.teach(4, IMAGES[4])
    assert [example.number for example in session.examples] == [1, 2, 4]
    with pytest.raises(InputError, match="no example 3"):
        session.forget(3)


def test_looking_keeps_nothing():
    session = taught(0, 1)
    before = session.moments[-1]
    session.look(IMAGES[3], 2, 3)
    assert session.moments[-1] is before
    assert len(session.examples) == 2


def test_a_look_with_a_label_shows_what_teaching_would_do():
    session = taught(0, 1)
    _, preview = session.look(IMAGES[3], 2, 3)
    session.teach(3, IMAGES[3])
    assert same(preview, session.moments[-1])


def test_a_switch_changes_the_names_and_not_the_network():
    session = taught(0, 1, 2)
    before = session.moments[-1]
    session.switch()
    assert session.moments[-1] is before
    assert session.tasks == [["A", "B", "C", "D", "E"], ["F", "G", "H", "I", "J"]]
    session.teach(0, IMAGES[4])
    assert [example.task for example in session.examples] == [0, 0, 0, 1]
    assert same(session.moments[-1], LEARNER.step(LEARNER.features(IMAGES[4]), 0, before))


def test_a_reset_is_a_new_session():
    session = taught(0, 1, 2)
    session.switch()
    session.reset()
    fresh = Session(LEARNER)
    assert (session.examples, session.tasks, session.moments) == (fresh.examples, fresh.tasks, fresh.moments)


def test_there_is_an_end_to_examples_and_tasks():
    session = Session(LEARNER)
    session.examples = [None] * MAX_EXAMPLES
    with pytest.raises(InputError, match="as many as fit; forget one, or reset"):
        session.teach(0, IMAGES[0])
    session = Session(LEARNER)
    for _ in range(MAX_TASKS - 1):
        session.switch()
    with pytest.raises(InputError, match="reset to begin anew"):
        session.switch()


@pytest.mark.parametrize("time", [-1, 3])
def test_there_is_no_moment_outside_of_time(time):
    with pytest.raises(InputError, match="expected 0 to 2"):
        taught(0, 1).moment(time)


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def full(clock):
    """As many sessions as fit, something taught in each."""
    sessions = Sessions(LEARNER, clock)
    names = [sessions.open() for _ in range(sessions.limit)]
    for name in names:
        sessions.find(name).rename(0, "mine")
    return sessions, names


def test_the_session_that_was_not_used_for_longest_makes_place():
    clock = Clock()
    sessions, (first, second, *others) = full(clock)
    clock.now = 601.0
    assert sessions.find(first) is not None
    sessions.open()
    assert sessions.find(second) is None
    assert all(sessions.find(name) is not None for name in (first, *others))


def test_no_session_in_use_makes_place():
    clock = Clock()
    sessions, names = full(clock)
    clock.now = 600.0
    with pytest.raises(
        Busy, match="there are 32 sessions, as many as fit, and all were used within the last 10 minutes"
    ):
        sessions.open()
    assert all(sessions.find(name) is not None for name in names)


def test_loading_the_page_again_and_again_throws_nobody_out_and_keeps_nobody_out_for_long():
    clock = Clock()
    sessions = Sessions(LEARNER, clock)
    mine = sessions.open()
    sessions.find(mine).teach(0, IMAGES[0])
    for _ in range(sessions.limit - 1):
        sessions.open()
    for _ in range(100):
        with pytest.raises(Busy):
            sessions.open()
    clock.now = 61.0
    assert sessions.find(sessions.open()).is_blank
    assert not sessions.find(mine).is_blank


@pytest.mark.parametrize(
    "change", [lambda s: s.teach(0, IMAGES[0]), lambda s: s.switch(), lambda s: s.rename(1, "mine")]
)
def test_a_session_is_blank_until_something_is_done_in_it_and_after_a_reset(change):
    session = Session(LEARNER)
    assert session.is_blank
    change(session)
    assert not session.is_blank
    session.reset()
    assert session.is_blank


def test_sessions_of_large_models_are_fewer(monkeypatch):
    assert Sessions(LEARNER).limit == 32
    monkeypatch.setattr(DrawingLearner, "moment_bytes", lambda self: 2**20)
    assert Sessions(LEARNER).limit == 4
    monkeypatch.setattr(DrawingLearner, "moment_bytes", lambda self: 2**30)
    assert Sessions(LEARNER).limit == 1


def test_names_of_sessions_cannot_be_guessed():
    sessions = Sessions(LEARNER)
    names = {sessions.open() for _ in range(20)}
    assert len(names) == 20
    assert min(map(len, names)) >= 22
    assert sessions.find("") is None


def test_names_of_classes_go_on_after_z():
    assert class_names(0, WAYS) == list("ABCDE")
    assert class_names(5, WAYS) == ["Z", "AA", "AB", "AC", "AD"]
