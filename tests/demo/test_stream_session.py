"""The life of a stream is a function of its seed and its length alone, however it was asked for."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from srwm.demo.bounds import Busy
from srwm.demo.stream_history import RECENT, SHOWN
from srwm.demo.stream_learner import StreamLearner
from srwm.demo.stream_session import StreamSession, StreamSessions
from srwm.demo.stream_views import stream_view
from srwm.demo.tasks import TASK_LENGTHS, draw_task
from srwm.nn import map_state

from .small_stream import GATED, WAYS, small_stream_model

LEARNER = StreamLearner(small_stream_model(**GATED))


def lived(*counts, seed=0, task_length=15, learner=LEARNER):
    session = StreamSession(learner, seed, task_length)
    for count in counts:
        session.live(count)
    return session


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 3))
@settings(max_examples=12)
def test_how_the_images_are_asked_for_changes_nothing(counts, seed):
    assert stream_view(lived(*counts, seed=seed)) == stream_view(lived(sum(counts), seed=seed))


def test_other_seeds_live_other_lives():
    views = [stream_view(lived(20, seed=seed)) for seed in range(3)]
    assert len({json.dumps(view["shown"]) for view in views}) == 3


def test_answers_are_those_of_the_model_which_is_told_each_label_one_step_late():
    session = lived(SHOWN, task_length=15)
    model, task = LEARNER.model, draw_task(LEARNER.model, 0, 0)
    state, previous = None, None
    for step, shown in enumerate(session.history.shown):
        probabilities, state = model.observe(task.images[step], previous, state)
        assert shown.probabilities == tuple(probabilities.tolist())
        assert shown.lived.answer == int(probabilities.argmax())
        assert shown.lived.label == task.labels[step]
        assert torch.equal(shown.image, task.images[step])
        previous = task.labels[step]


def test_labels_matter():
    """A model that was told other labels answers otherwise: what it says rests on what it was told."""
    task, model = draw_task(LEARNER.model, 0, 0), LEARNER.model
    ends = []
    for shift in (0, 1):
        state, previous = None, None
        for image, label in zip(task.images[:8], task.labels, strict=False):
            probabilities, state = model.observe(image, previous, state)
            previous = (label + shift) % WAYS
        ends.append(probabilities)
    assert not torch.equal(*ends)


@pytest.mark.parametrize("length", TASK_LENGTHS)
def test_the_classes_change_after_every_so_many_images(length):
    session = lived(2 * length + 1, task_length=length)
    tasks = [each.task for each in session.history.recent]
    assert tasks == [0] * length + [1] * length + [2]
    assert [each.place for each in session.history.recent] == [*range(1, length + 1)] * 2 + [1]
    assert (session.task, session.place) == (2, 1)


def test_images_of_a_class_are_counted_from_the_change_on():
    session = lived(40)
    seen = {}
    for each in session.history.recent:
        seen[each.task, each.label] = seen.get((each.task, each.label), 0) + 1
        assert each.instance == seen[each.task, each.label]


def test_counts_are_those_of_the_answers():
    session = lived(100)
    recent = list(session.history.recent)
    assert session.history.right == sum(each.answer == each.label for each in recent)
    firsts = [each.is_right for each in recent if each.instance == 1]
    assert session.history.instances[0] == [sum(firsts), len(firsts)]
    assert sum(images for _, images in session.history.instances) == 100


def test_other_classes_can_come_at_once():
    session = lived(4)
    session.change()
    session.change()
    session.live(1)
    assert [each.task for each in session.history.recent] == [0, 0, 0, 0, 1]
    assert session.history.shown[-1].lived.place == 1


def test_before_the_first_image_there_is_nothing_to_change():
    session = StreamSession(LEARNER)
    session.change()
    assert (session.task, session.is_blank) == (0, True)


def test_how_long_classes_stay_counts_at_once():
    session = lived(20, task_length=30)
    session.set_task_length(15)
    session.live(16)
    assert [each.task for each in session.history.recent] == [0] * 20 + [1] * 15 + [2]


def test_a_reset_is_a_new_life():
    session = lived(20, task_length=15)
    session.change()
    session.reset(5)
    fresh = StreamSession(LEARNER, 5, 15)
    assert session.is_blank
    assert stream_view(session) == stream_view(fresh)
    session.live(20)
    assert stream_view(session) == stream_view(lived(20, seed=5))


def test_what_is_shown_of_the_matrices_is_what_the_last_image_left():
    session, shorter = lived(30), lived(29)
    state = session._stream.state
    changes = [layer.change[0] for layer in state.layers if hasattr(layer, "change")]
    assert len(changes) == len(session.layers) == 2
    assert all(torch.equal(layer.change, change) for layer, change in zip(session.layers, changes, strict=True))
    assert not torch.equal(session.layers[0].change, shorter.layers[0].change)
    assert session.norm == pytest.approx(math.sqrt(sum(float(c.double().square().sum()) for c in changes)), rel=1e-9)


def test_what_is_kept_does_not_grow_with_the_life():
    session = lived(*[200] * 4, task_length=75)
    longer = lived(*[200] * 8, task_length=75)
    assert len(longer.history.recent) == RECENT == len(session.history.recent)
    texts = [json.dumps(stream_view(each)) for each in (session, longer)]
    assert abs(len(texts[1]) - len(texts[0])) < 3000
    # No image holds on to those of its task.
    assert all(shown.image.untyped_storage().nbytes() == shown.image.nbytes for shown in longer.history.shown)


def broken(session):
    """What a model leaves behind whose matrices have grown beyond all numbers."""
    session._stream.state = map_state(lambda part: part.float() * torch.inf, session._stream.state)
    return session


def test_a_life_ends_when_the_matrices_have_grown_beyond_all_numbers():
    session = lived(7, learner=StreamLearner(small_stream_model()))
    before = stream_view(session)
    broken(session).live(5)
    after = stream_view(session)
    assert session.is_dead
    assert after == {**before, "is_dead": True}
    session.live(5)
    assert stream_view(session) == after
    json.dumps(after, allow_nan=False)
    session.reset(0)
    session.live(7)
    assert stream_view(session) == before


def test_a_norm_beyond_all_numbers_ends_a_life_before_it_is_remembered(monkeypatch):
    session = lived(3)
    monkeypatch.setattr("srwm.demo.stream_session.learnt_norm", lambda state: math.inf)
    session.live(4)
    assert session.is_dead
    assert session.history.steps == 3


@pytest.mark.parametrize("memory", ["lstm", "deltanet", "sr_deltanet", "fake_srwm"])
def test_other_memories_live_too(memory):
    session = lived(20, learner=StreamLearner(small_stream_model(memory=memory)))
    view = stream_view(session)
    assert view["steps"] == 20
    assert len(view["layers"]) == (2 if memory == "sr_deltanet" else 0)
    assert view["norm"] > 0 or memory == "fake_srwm"
    json.dumps(view, allow_nan=False)


def test_there_is_an_end_to_sessions(monkeypatch):
    assert StreamSessions(LEARNER).limit == 32
    monkeypatch.setattr(StreamLearner, "state_bytes", lambda self: 2**26)
    sessions = StreamSessions(LEARNER, clock=lambda: 0.0)
    names = [sessions.open() for _ in range(sessions.limit)]
    assert sessions.limit == 1
    with pytest.raises(Busy, match="there are 1 sessions, as many as fit"):
        sessions.open()
    assert sessions.find(names[0]).is_blank
    sessions.find(names[0]).live(1)
    assert not sessions.find(names[0]).is_blank
