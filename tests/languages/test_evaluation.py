"""The test, on networks whose answers are known."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from srwm.languages import TASKS, TaskConfig, evaluate, find_task
from srwm.languages.evaluation import _PIECE

from .tiny import network

LENGTHS = ("2-50", "51-100", "200")


class Perfect(nn.Module):
    """Knows parity, and carries it on as its state."""

    def forward(self, symbols, state=None):
        odd = (symbols.cumsum(dim=1) + (0 if state is None else state)) % 2
        return F.one_hot(odd, 2).float(), odd[:, -1:]


class FirstOnly(nn.Module):
    """Is right up to a position, and wrong behind it."""

    def __init__(self, last):
        super().__init__()
        self.last = last

    def forward(self, symbols, state=None):
        odd, read = (0, 0) if state is None else state
        odd = (symbols.cumsum(dim=1) + odd) % 2
        place = read + torch.arange(1, symbols.shape[1] + 1)
        answers = torch.where(place <= self.last, odd, 1 - odd)
        return F.one_hot(answers, 2).float(), (odd[:, -1:], read + symbols.shape[1])


class Random(nn.Module):
    """Guesses."""

    def __init__(self):
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, symbols, state=None):
        return torch.rand(*symbols.shape, 2, generator=self.generator), None


def test_a_perfect_network_is_right_everywhere():
    longer = (*LENGTHS, str(2 * _PIECE + 7))
    found = evaluate(Perfect(), TASKS["parity"], longer, sequences=20)
    assert found.accuracy == 1
    assert [(each.lengths, each.whole, each.positions, each.sequences) for each in found.by_length] == [
        (text, 1, 1, 20) for text in longer
    ]
    assert {each.accuracy for each in found.by_position} == {1}


def test_a_network_that_guesses_is_right_at_half_of_the_positions_and_in_no_sequence():
    found = evaluate(Random(), TASKS["parity"], LENGTHS, sequences=100)
    for each in found.by_length:
        assert each.positions == pytest.approx(0.5, abs=0.03)
    assert [each.whole for each in found.by_length[1:]] == [0, 0]
    assert found.by_length[0].whole < 0.1


def test_accuracy_by_position_shows_where_a_network_goes_wrong():
    found = evaluate(FirstOnly(100), TASKS["parity"], ("51-100", "101", "1000"), sequences=5)
    assert [each.whole for each in found.by_length] == [1, 0, 0]
    assert found.by_length[1].positions == pytest.approx(100 / 101)
    assert found.by_length[2].positions == pytest.approx(0.1)
    for each in found.by_position:
        right = max(min(100, each.last) - each.first + 1, 0)
        assert each.accuracy == pytest.approx(right / (each.last - each.first + 1))
    places = [place for each in found.by_position for place in range(each.first, each.last + 1)]
    assert places == list(range(1, 1001))


def test_the_lengths_are_those_of_the_sequences_that_were_drawn():
    found = evaluate(Random(), TASKS["dyck-1"], ("51-100", "201"), sequences=400)
    assert [(each.shortest, each.longest) for each in found.by_length] == [(52, 100), (200, 200)]


def test_what_only_fills_up_counts_for_nothing():
    """Perfect is right on symbols that nobody asked about; a share above 1 or below would show it."""
    found = evaluate(FirstOnly(2), TASKS["parity"], ("2-4",), sequences=300)
    (each,) = found.by_length
    assert each.whole == pytest.approx(1 / 3, abs=0.08)
    assert each.positions == pytest.approx(2 / 3, abs=0.04)


@pytest.mark.parametrize("memory", ["srwm", "gated_deltanet", "lstm"])
def test_reading_in_pieces_is_reading_at_once(memory):
    one = network(model={"memory": memory}).double()
    symbols = torch.randint(2, (3, 40))
    whole, _ = one(symbols)
    state, parts = None, []
    for piece in symbols.split(7, dim=1):
        scores, state = one(piece, state)
        parts.append(scores)
    assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-9)


def test_the_seed_draws_other_sequences_and_the_same_seed_the_same():
    task = find_task(TaskConfig(name="s3"))
    tracker = network(task={"name": "s3"})
    tested = [evaluate(tracker, task, LENGTHS, sequences=10, seed=seed) for seed in (0, 0, 1)]
    assert tested[0] == tested[1] != tested[2]


def test_a_network_in_training_stays_so():
    tracker = network(model={"dropout": 0.5}).train()
    found = [evaluate(tracker, TASKS["parity"], ("50",), sequences=10) for _ in range(2)]
    assert tracker.training
    assert found[0] == found[1]
