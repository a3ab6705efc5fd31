"""What is shown of a sequence is a function of its symbols alone, however they came."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from srwm.demo.tracking_learner import TrackingLearner
from srwm.demo.tracking_session import MAX_BINS, SHOWN, Bins, TrackingSession, TrackingSessions
from srwm.demo.tracking_views import tracking_view
from srwm.errors import InputError, RunError
from srwm.nn import map_state

from .small import small_model
from .small_tracking import NAMES, small_tracker, small_tracking

LEARNER = TrackingLearner(small_tracking())
BITS = [1, 0, 1, 1, 0, 0, 1, 1, 1, 0] * 4


def read(*pieces, learner=LEARNER):
    session = TrackingSession(learner)
    for piece in pieces:
        session.read(piece)
    return session


def view(symbols, learner=LEARNER):
    return tracking_view(read(symbols, learner=learner))


@given(st.lists(st.integers(0, 1), min_size=1, max_size=20), st.integers(0, 19))
@settings(max_examples=8)
def test_how_the_symbols_come_changes_nothing(symbols, cut):
    pieces = [piece for piece in (symbols[:cut], symbols[cut:]) if piece]
    assert tracking_view(read(*pieces)) == view(symbols)


def test_answers_are_those_of_the_networks_on_the_whole_sequence():
    shown = read(BITS[:SHOWN]).shown
    for i, tracker in enumerate(LEARNER.trackers):
        scores, _ = tracker.model(torch.tensor([BITS[:SHOWN]]))
        said = torch.tensor([each.probabilities[i] for each in shown])
        torch.testing.assert_close(said, scores[0].softmax(dim=-1).detach(), rtol=0, atol=1e-5)
        assert [each.answers[i] for each in shown] == scores[0].argmax(dim=-1).tolist()


@pytest.mark.parametrize("task", ["parity", "sum-mod-5", "cups-3", "s3"])
def test_the_truth_is_that_of_the_task(task):
    learner = TrackingLearner(small_tracking(task))
    symbols = [(7 * i) % 5 % len(learner.language.symbols) for i in range(SHOWN)]
    answer = 0
    for each in read(symbols, learner=learner).shown:
        answer = learner.language.transitions[answer][each.symbol]
        assert each.truth == answer


def test_right_answers_and_the_first_error_are_counted():
    session = read(BITS)
    truths = torch.tensor(BITS).cumsum(0) % 2
    for i, tracker in enumerate(LEARNER.trackers):
        right = (tracker.model(torch.tensor([BITS]))[0][0].argmax(dim=-1) == truths).tolist()
        assert session.moment.right[i] == sum(right)
        assert session.moment.first_errors[i] == (None if all(right) else right.index(False) + 1)
        assert sum(stretch[1 + i] for stretch in session.moment.bins.stretches) == sum(right)
    assert sum(stretch[0] for stretch in session.moment.bins.stretches) == session.steps == len(BITS)


@pytest.mark.parametrize("back", range(0, SHOWN, 5))
def test_a_symbol_that_is_replaced_leaves_no_trace(back):
    session = read(BITS)
    place = len(BITS) - back
    session.replace(place, 1 - BITS[place - 1])
    changed = [*BITS[: place - 1], 1 - BITS[place - 1], *BITS[place:]]
    assert {**tracking_view(session), "shown": None} == {**view(changed), "shown": None}
    assert session.shown[-1] == read(changed).shown[-1]
    session.replace(place, BITS[place - 1])
    assert session.moment.right == read(BITS).moment.right


def test_what_is_no_longer_shown_cannot_be_replaced():
    session = read(BITS)
    before = tracking_view(session)
    for place in (0, len(BITS) - SHOWN, len(BITS) + 1):
        with pytest.raises(InputError, match=f"place {place} cannot be changed; expected one that is shown: 25 to 40"):
            session.replace(place, 0)
    with pytest.raises(InputError, match="shown: none yet"):
        read().replace(1, 0)
    assert tracking_view(session) == before


def test_what_is_shown_of_the_matrices_is_what_the_last_symbol_left():
    session = read(BITS)
    state = LEARNER.trackers[0].model(torch.tensor([BITS]))[1]
    assert session.layers[1] == ()
    for step, layer in zip(session.layers[0], state.layers, strict=True):
        torch.testing.assert_close(step.change, layer.change[0].detach(), rtol=0, atol=1e-5)
        assert step.rates.shape == (2, 4)


def test_stretches_are_bounded_and_lose_no_place():
    bins = Bins(1, ())
    for place in range(5 * MAX_BINS + 3):
        bins = bins.add((True, place % 3 == 0))
        assert len(bins.stretches) <= MAX_BINS
        assert all(stretch[0] == bins.width for stretch in bins.stretches[:-1])
    places, right, thirds = map(sum, zip(*bins.stretches, strict=True))
    assert (places, right, thirds) == (503, 503, 168)
    assert bins.width == 8


def test_networks_that_give_no_numbers_any_more_are_named_and_what_was_read_stays(monkeypatch):
    learner = TrackingLearner([(small_tracker(), NAMES[0])])
    session = read(BITS[:3], learner=learner)
    broken = map_state(lambda tensor: tensor * torch.nan, session.moment.states[0])
    session.moment = session.moment._replace(states=(broken,))
    with pytest.raises(RunError, match="the matrices of small srwm <i> have grown beyond all numbers; begin anew"):
        session.read([1])
    assert session.steps == 3
    session.reset()
    session.read(BITS[:3])
    assert tracking_view(session) == view(BITS[:3], learner)


def test_models_that_do_not_go_together_are_refused():
    for models, sentence in (
        ([(small_model(), "images")], "images reads no symbols; expected a model of languages, such as parity-srwm"),
        ([*small_tracking(), (small_tracker(task="s3"), "c")], "have the tasks parity, s3; expected one task"),
        ([(small_tracker(task="dyck-1"), "d")], "the task 'dyck-1' do not follow from one place to the next"),
    ):
        with pytest.raises(InputError, match=sentence):
            TrackingLearner(models)


@pytest.mark.parametrize(
    ("memory", "title"),
    [("srwm", "SRWM"), ("deltanet", "DeltaNet"), ("fake_srwm", "Fake SR"), ("attention", "Transformer")],
)
def test_networks_are_called_by_their_memory_without_an_article(memory, title):
    assert TrackingLearner([(small_tracker(memory), "some")]).trackers[0].title == title


def test_the_longest_training_of_the_networks_is_what_lengths_are_compared_with():
    models = [(small_tracker(longest=longest), "some") for longest in (16, 40)]
    assert TrackingLearner(models).trained_length == 40


def test_large_networks_get_fewer_sessions(monkeypatch):
    assert TrackingSessions(LEARNER).limit == 32
    monkeypatch.setattr("srwm.demo.tracking_learner.Tracker.state_bytes", lambda self: 2**22)
    assert TrackingSessions(LEARNER).limit == 1
