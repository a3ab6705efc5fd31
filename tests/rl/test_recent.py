"""The ring of last steps: what is given is what was seen and done, in the order of time."""

import pytest
import torch

from srwm.nn import SequenceState
from srwm.rl.recent import Recent
from srwm.rl.unroll import empty_unroll

CPU = torch.device("cpu")
NUMBER, STEPS = 3, 4


def state_of(rows):
    return SequenceState((torch.as_tensor(rows, dtype=torch.float32),))


def room_of(number):
    return empty_unroll(number, STEPS, state_of([[0, 0]]), CPU)


def numbered(step):
    """What three environments see and do at a step: its number, and which of them it is."""
    rewards = torch.arange(NUMBER) + 10.0 * step
    frames = rewards.to(torch.uint8)[:, None, None, None].expand(NUMBER, 64, 64, 3)
    return frames, rewards, rewards % 20 < 10


def play(recent, steps, start=0):
    for step in range(start, start + steps):
        recent.act(10 * step + torch.arange(NUMBER), 0.5 * step - torch.arange(NUMBER))
        recent.see(*numbered(step + 1))


def make():
    recent = Recent(NUMBER, STEPS, state_of([[0, 0]]), CPU)
    recent.see(*numbered(0))
    return recent


@pytest.mark.parametrize("steps", [4, 5, 8, 9, 11])
def test_the_last_steps_are_given_wherever_the_ring_stands(steps):
    recent = make()
    play(recent, steps)
    room = room_of(2)
    recent.give(1, room)
    times = torch.arange(steps - STEPS, steps + 1)
    wanted = 10.0 * times + torch.tensor([[1.0], [2.0]])
    assert torch.equal(room.rewards, wanted)
    assert torch.equal(room.frames[..., 7, 7, 1], wanted.to(torch.uint8))
    assert torch.equal(room.first, wanted % 20 < 10)
    assert torch.equal(room.actions, wanted[:, :-1].long())
    assert torch.equal(room.log_mu, 0.5 * times[:-1] - torch.tensor([[1.0], [2.0]]))


def test_the_state_is_the_one_at_the_beginning_of_the_unroll():
    recent = make()
    recent.begin(1, 2, state_of([[0, 1], [2, 3], [4, 5]]))
    recent.begin(0, 1, state_of([[-1, -1]] * 3))
    play(recent, STEPS)
    room = room_of(NUMBER)
    recent.give(0, room)
    assert room.state.layers[0].tolist() == [[-1, -1], [2, 3], [4, 5]]


def test_it_goes_on_from_its_tensors():
    recent, other = make(), make()
    play(recent, 6)
    other.load_tensors({name: tensor.clone() for name, tensor in recent.tensors().items()})
    rooms = [room_of(NUMBER) for _ in range(2)]
    for each, room in zip((recent, other), rooms, strict=True):
        play(each, 2, start=6)
        each.give(0, room)
    assert torch.equal(rooms[0].rewards, rooms[1].rewards)
    assert torch.equal(rooms[0].actions, rooms[1].actions)
