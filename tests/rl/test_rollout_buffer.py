"""The rollout buffer: what is read is what was written, in the order of time, and nothing lies in it twice."""

import pytest
import torch

from srwm.errors import InputError
from srwm.nn import SequenceState, named_tensors
from srwm.rl.rollout_buffer import RolloutBuffer
from srwm.rl.staggered import RolloutSchedule

CPU = torch.device("cpu")
NUM_ENVS, STEPS = 3, 4
SCHEDULE = RolloutSchedule(num_envs=NUM_ENVS, actors=1, batch_size=1, unroll_length=STEPS, groups=3)
ALL = slice(0, NUM_ENVS)


def state_of(rows):
    return SequenceState((torch.as_tensor(rows, dtype=torch.float32),))


def make(schedule=SCHEDULE, *, phases_ahead=0):
    buffer = RolloutBuffer(schedule, 1, state_of([[0, 0]]), CPU, phases_ahead=phases_ahead)
    observe(buffer, 0)
    return buffer


def observe(buffer, time):
    """Three environments show the time, and which of them they are."""
    rewards = torch.arange(NUM_ENVS) + 10.0 * time
    frames = rewards.to(torch.uint8)[:, None, None, None].expand(NUM_ENVS, 64, 64, 3)
    buffer.write_observations(time, ALL, frames, rewards, rewards % 20 < 10)


def play(buffer, steps, start=0):
    for time in range(start, start + steps):
        buffer.write_actions(time, ALL, 10 * time + torch.arange(NUM_ENVS), 0.5 * time - torch.arange(NUM_ENVS))
        observe(buffer, time + 1)


def read(buffer, envs, end):
    return buffer.unrolls(torch.tensor(envs), torch.full((len(envs),), end))


@pytest.mark.parametrize("end", [4, 5, 8, 9, 11])
def test_an_unroll_is_its_last_steps_wherever_the_ring_stands(end):
    buffer = make()
    play(buffer, end)
    unroll = read(buffer, [1, 2], end)
    times = torch.arange(end - STEPS, end + 1)
    expected = 10.0 * times + torch.tensor([[1.0], [2.0]])
    assert torch.equal(unroll.rewards, expected)
    assert torch.equal(unroll.frames[..., 7, 7, 1], expected.to(torch.uint8))
    assert torch.equal(unroll.first, expected % 20 < 10)
    assert torch.equal(unroll.actions, expected[:, :-1].long())
    assert torch.equal(unroll.behaviour_log_prob, 0.5 * times[:-1] - torch.tensor([[1.0], [2.0]]))


def test_unrolls_of_one_batch_may_end_at_different_times():
    buffer = make(phases_ahead=1)
    play(buffer, 6)
    unrolls = buffer.unrolls(torch.tensor([2, 0]), torch.tensor([5, 6]))
    assert unrolls.rewards[:, 0].tolist() == [12.0, 20.0]
    assert unrolls.rewards[:, -1].tolist() == [52.0, 60.0]


def test_the_state_is_the_one_at_the_beginning_of_the_unroll():
    buffer = make()
    buffer.begin_unrolls(0, slice(1, 3), state_of([[2, 3], [4, 5]]))
    buffer.begin_unrolls(0, slice(0, 1), state_of([[-1, -1]]))
    play(buffer, STEPS)
    assert read(buffer, [0, 1, 2], STEPS).state.layers[0].tolist() == [[-1, -1], [2, 3], [4, 5]]


@pytest.mark.parametrize("groups", [1, 3])
def test_with_overlap_unrolls_stay_while_the_next_phase_is_played(groups):
    schedule = RolloutSchedule(num_envs=NUM_ENVS, actors=1, batch_size=1, unroll_length=STEPS, groups=groups)
    buffer = make(schedule, phases_ahead=1)
    phase = 2 * groups  # whatever phase, so long as unrolls have ended with it
    group = schedule.group_envs(phase % groups)
    buffer.begin_unrolls(schedule.end(phase) - STEPS, group, state_of([[7, 7]] * (group.stop - group.start)))
    play(buffer, schedule.end(phase))
    before = read(buffer, [group.start], schedule.end(phase))
    buffer.begin_unrolls(schedule.end(phase), group, state_of([[8, 8]] * (group.stop - group.start)))
    play(buffer, schedule.end(phase + 1) - schedule.end(phase), start=schedule.end(phase))
    after = read(buffer, [group.start], schedule.end(phase))
    assert before.state.layers[0].tolist() == [[7, 7]]
    for (name, own), (_, other) in zip(named_tensors(before), named_tensors(after), strict=True):
        assert torch.equal(own, other), name


def test_unrolls_that_were_played_elsewhere_are_read_as_if_played_here():
    here, there = make(), make()
    there.begin_unrolls(2, slice(1, 3), state_of([[2, 3], [4, 5]]))
    play(there, 6)
    envs, ends = torch.tensor([1, 2]), torch.tensor([6, 6])
    here.write_unrolls(envs, ends, dict(named_tensors(there.unrolls(envs, ends))))
    for (name, own), (_, other) in zip(
        named_tensors(here.unrolls(envs, ends)), named_tensors(there.unrolls(envs, ends)), strict=True
    ):
        assert torch.equal(own, other), name


def test_it_goes_on_from_its_tensors():
    buffer, other = make(), make()
    play(buffer, 6)
    end = other.load_tensors(ALL, {name: tensor.clone() for name, tensor in buffer.tensors(ALL, 6).items()})
    assert end == 6
    for each in (buffer, other):
        play(each, 2, start=6)
    own, same = read(buffer, [0, 1, 2], 8), read(other, [0, 1, 2], 8)
    assert torch.equal(own.rewards, same.rewards)
    assert torch.equal(own.actions, same.actions)


def test_tensors_of_another_number_of_environments_are_refused():
    saved = make().tensors(slice(0, 2), 0)
    with pytest.raises(InputError, match="the unrolls in the checkpoint"):
        make().load_tensors(ALL, saved)


@pytest.mark.parametrize(("phases_ahead", "steps"), [(0, 1 + STEPS), (1, 1 + STEPS + 2), (2, 1 + STEPS + 4)])
def test_no_frame_lies_in_it_twice(phases_ahead, steps):
    # The steps of an unroll, the frame after them, and those of the phases ahead, the longest of which has 2.
    tensors = make(phases_ahead=phases_ahead)._observations
    assert tensors["frames"].shape[:2] == (steps, NUM_ENVS)
