"""Our RMSprop is PyTorch's, but for steps that are not to be done."""

import math

import torch
from torch import nn

from srwm.rl.rmsprop import RMSprop


def network(memory_format=torch.contiguous_format):
    torch.manual_seed(0)
    made = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2)).double()
    return made.to(memory_format=memory_format)


def backward(one, seed):
    x = torch.randn(5, 3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    one(x).square().sum().backward()


def ours(one):
    return RMSprop(one.named_parameters(), alpha=0.9, eps=0.01)


def scalar(value):
    return torch.tensor(value, dtype=torch.float64)


GOOD, BAD = torch.tensor(False), torch.tensor(True)


def test_steps_are_those_of_pytorch_in_every_layout():
    for memory_format in (torch.contiguous_format, torch.channels_last):
        one, other = network(memory_format), network()
        mine, theirs = ours(one), torch.optim.RMSprop(other.parameters(), alpha=0.9, eps=0.01)
        for seed, rate in enumerate((0.1, 0.03, 0.01)):
            mine.zero_grad()
            theirs.zero_grad()
            backward(one, seed)
            backward(other, seed)
            for group in theirs.param_groups:
                group["lr"] = rate
            for parameter in other.parameters():
                parameter.grad.mul_(0.5)
            mine.step(scalar(rate), scalar(0.5), GOOD)
            theirs.step()
        for found, expected in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
        for (name, expected), state in zip(other.named_parameters(), theirs.state.values(), strict=True):
            assert mine.squares[name].shape == expected.shape
            torch.testing.assert_close(mine.squares[name], state["square_avg"], rtol=1e-12, atol=1e-12)


def test_a_bad_step_changes_nothing_whatever_the_gradients_are():
    one = network()
    mine = ours(one)
    backward(one, 0)
    mine.step(scalar(0.1), scalar(1.0), GOOD)
    before = [tensor.clone() for tensor in (*one.parameters(), *mine.squares.values())]
    for parameter in one.parameters():
        parameter.grad.fill_(math.nan)
    mine.step(scalar(0.1), scalar(math.nan), BAD)
    after = [*one.parameters(), *mine.squares.values()]
    assert all(torch.equal(found, expected) for found, expected in zip(after, before, strict=True))


def test_a_parameter_without_a_gradient_stays():
    one = network()
    mine = ours(one)
    backward(one, 0)
    before = {name: parameter.detach().clone() for name, parameter in one.named_parameters()}
    one[2].bias.grad = None
    mine.step(scalar(0.1), scalar(1.0), GOOD)
    changed = {name for name, parameter in one.named_parameters() if not torch.equal(parameter, before[name])}
    assert changed == {"0.weight", "0.bias", "2.weight"}


def test_squares_can_be_put_back_in_place():
    one, again = network(), network()
    mine, other = ours(one), ours(again)
    backward(one, 0)
    mine.step(scalar(0.1), scalar(1.0), GOOD)
    again.load_state_dict(one.state_dict())
    for name, square in other.squares.items():
        square.copy_(mine.squares[name])
    for each, optimizer in ((one, mine), (again, other)):
        optimizer.zero_grad()
        backward(each, 1)
        optimizer.step(scalar(0.1), scalar(1.0), GOOD)
    assert all(map(torch.equal, one.parameters(), again.parameters()))
