"""Noise in the state between the pieces of a training sequence."""

import pytest
import torch

from srwm.languages.state_noise import read_with_noise
from srwm.nn import SelfReferentialState, SequenceState

from .tiny import network, trainer

MEMORIES = ("srwm", "deltanet", "lstm", "attention", "feed_forward")


class Counter:
    """Answers with the state it is given, in which it has counted the symbols."""

    def __init__(self, rows, size):
        self.states = []
        self.new = SelfReferentialState(torch.full((rows, 2, 3, size), 5.0), torch.zeros(rows, dtype=torch.int64))

    def __call__(self, symbols, state=None):
        state = self.new if state is None else state
        self.states.append(state)
        return torch.zeros(*symbols.shape, 2), state._replace(steps=state.steps + symbols.shape[1])


@pytest.mark.parametrize("memory", MEMORIES)
def test_without_noise_the_pieces_are_the_whole(memory):
    one = network(model={"memory": memory}).double()
    symbols = torch.randint(2, (3, 10))
    pieces = read_with_noise(one, symbols, noise=0.0, every=4)
    assert torch.allclose(pieces, one(symbols)[0], atol=1e-9)


@pytest.mark.parametrize("memory", MEMORIES)
def test_noise_changes_what_follows_the_first_piece_where_there_is_a_memory(memory):
    one = network(model={"memory": memory}).double()
    symbols = torch.randint(2, (3, 10))
    whole, noisy = one(symbols)[0], read_with_noise(one, symbols, noise=0.3, every=4)
    assert torch.allclose(noisy[:, :4], whole[:, :4], atol=1e-9)
    assert torch.allclose(noisy[:, 4:], whole[:, 4:], atol=1e-9) == (memory == "feed_forward")


def test_the_noise_is_a_share_of_the_root_mean_square_and_leaves_counts_alone():
    torch.manual_seed(0)
    counter = Counter(rows=2, size=2000)
    read_with_noise(counter, torch.zeros(2, 6, dtype=torch.int64), noise=0.1, every=4)
    _, second = counter.states
    assert torch.equal(second.steps, torch.tensor([4, 4]))
    difference = second.change - counter.new.change
    for row in difference:
        assert float(row.std()) == pytest.approx(0.5, rel=0.05)
        assert float(row.mean()) == pytest.approx(0.0, abs=0.05)


def test_every_row_has_noise_of_its_own():
    counter = Counter(rows=2, size=3)
    read_with_noise(counter, torch.zeros(2, 2, dtype=torch.int64), noise=0.1, every=1)
    change = counter.states[1].change
    assert not torch.equal(change[0], change[1])


def test_a_gradient_goes_through_the_noise():
    one = network()
    symbols = torch.ones(2, 8, dtype=torch.int64)
    seen: list[torch.Tensor] = []

    def forward(symbols, state=None):
        scores, state = one(symbols, state)
        change = state.layers[0].change.requires_grad_()
        change.retain_grad()
        seen.append(change)
        return scores, SequenceState((state.layers[0]._replace(change=change),))

    read_with_noise(forward, symbols, noise=0.1, every=4)[:, 4:].sum().backward()
    assert seen[0].grad.abs().sum() > 0


def test_training_has_the_noise_of_its_recipe_and_a_validation_has_none():
    train = {"state_noise": 0.5, "validation_lengths": ("2-8",)}
    without, one = trainer(), trainer(train=train)
    for each in (without, one):
        torch.manual_seed(0)
        each.train_step(0)
    assert without.metrics()["train/loss"] != one.metrics()["train/loss"]
    assert one.validate() == one.validate()
