"""The places between which a matrix moves."""

from dataclasses import replace

import pytest
import torch
from PIL import Image
from watched_layers import LAYERS, inputs

from srwm.errors import InputError
from srwm.inspect import Inspection, inspect_call
from srwm.inspect.state_plot import places_of_states, plot_states


def record_with(change):
    """A record of some layer with other changes [b, t, h, d, m]."""
    with torch.no_grad():
        (record,) = inspect_call(LAYERS["srwm"](), [inputs(*change.shape[:2])])[1]
    return replace(record, change=change)


def moving(states, apart=5.0, noise=0.1):
    """Changes that lie at a place of their own for each state, and differ a little besides."""
    torch.manual_seed(0)
    with torch.no_grad():
        (record,) = inspect_call(LAYERS["srwm"](), [inputs(*states.shape)])[1]
    shape = record.change.shape
    places = apart * torch.randn(int(states.max()) + 1, *shape[2:], dtype=record.change.dtype)
    return replace(record, change=places[states] + noise * torch.randn(shape, dtype=record.change.dtype)), places


STATES = torch.tensor([[0, 1, 1, 0, 1, 0], [1, 0, 0, 0, 1, 1]])


def test_two_places_lie_apart_in_the_first_direction_and_tell_every_state():
    record, places = moving(STATES)
    found = places_of_states(record, STATES)
    assert found.told == 1
    along = found.points[..., 0]
    low, high = sorted((float(along[STATES == 0].mean()), float(along[STATES == 1].mean())))
    assert high - low == pytest.approx(float((places[0] - places[1]).norm()), rel=0.05)
    assert along[STATES == 0].std() < 0.1 * (high - low)


def test_places_that_have_nothing_to_do_with_the_states_tell_little():
    record, _ = moving(torch.zeros(8, 40, dtype=torch.int64), noise=1.0)
    states = torch.randint(2, (8, 40), generator=torch.Generator().manual_seed(0))
    far = places_of_states(moving(states)[0], states).told
    assert far == 1
    # Every mean of few steps lies nearer to those that it was made of; half is chance.
    assert places_of_states(record, states).told < 0.85


def test_three_places_span_the_plane():
    states = torch.arange(12).reshape(2, 6) % 3
    record, places = moving(states, noise=0.0)
    points = places_of_states(record, states).points
    between = [(points[states == i][0] - points[states == j][0]).norm() for i, j in ((0, 1), (0, 2), (1, 2))]
    wanted = [(places[i] - places[j]).norm() for i, j in ((0, 1), (0, 2), (1, 2))]
    assert [float(each) for each in between] == pytest.approx([float(each) for each in wanted], rel=1e-4)


def test_states_may_have_any_numbers():
    record, _ = moving(STATES)
    one, other = places_of_states(record, STATES), places_of_states(record, 7 * STATES + 2)
    assert torch.allclose(one.points, other.points)
    assert one.told == other.told


def test_one_state_alone_gets_a_sentence():
    record, _ = moving(STATES)
    with pytest.raises(InputError, match="only one state came up"):
        places_of_states(record, torch.zeros_like(STATES))


def test_a_picture_is_drawn_of_two_layers(tmp_path):
    record, _ = moving(STATES)
    inspection = Inspection((record, replace(record, name="other")), 1)
    plot_states(inspection, STATES, ("even", "odd"), tmp_path / "states.png", words=list("110101"))
    with Image.open(tmp_path / "states.png") as picture:
        assert len(picture.convert("RGB").getcolors(2**24)) > 20


def test_of_many_states_and_long_sequences_a_picture_is_drawn_without_names_and_words(tmp_path):
    states = torch.arange(160).reshape(2, 80) % 10
    record, _ = moving(states)
    plot_states(Inspection((record,), 1), states, list("abcdefghij"), tmp_path / "states.png", words=["x"] * 80)
    assert (tmp_path / "states.png").stat().st_size > 1000


def test_layers_that_never_change_are_not_drawn(tmp_path):
    record, _ = moving(STATES)
    with pytest.raises(InputError, match="no recorded layer changes its weights"):
        plot_states(Inspection((replace(record, kind="fixed"),), 1), STATES, ("even", "odd"), tmp_path / "states.png")
