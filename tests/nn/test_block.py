import pytest
import torch
from torch import nn

from srwm.nn import LSTM, SRWM, Block, DeltaNet, FeedForward


def test_is_the_memory_then_the_feed_forward():
    memory, feed_forward = SRWM(8, 2), FeedForward(8, 6)
    x = torch.randn(2, 3, 8)
    inner, state = memory(x)
    y, found = Block(memory, feed_forward)(x)
    assert torch.equal(y, feed_forward(inner)[0])
    assert torch.equal(found.change, state.change)


def test_its_state_is_that_of_the_memory():
    memory = DeltaNet(8, 2)
    state = Block(memory, FeedForward(8)).initial_state(3)
    assert type(state) is type(memory.initial_state(3))


def test_a_memory_of_another_size_gets_a_sentence():
    with pytest.raises(ValueError, match="memory maps 8 features to 5; expected 8 to 8"):
        Block(LSTM(8, 5), FeedForward(8))


class RunningSum(nn.Module):
    """A memory of the user's own, with nothing beyond what the contract asks for."""

    def forward(self, x, state=None, *, reset=None):
        sums = x.cumsum(dim=1) + (0 if state is None else state[0][:, None])
        return sums, (sums[:, -1],)


def test_a_memory_of_your_own_needs_no_sizes_and_no_read():
    block = Block(RunningSum(), FeedForward(4))
    x, queries = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    y, state = block(x)
    assert torch.equal(y, block.feed_forward(x.cumsum(dim=1))[0])
    wanted = [block(queries[:, i : i + 1], state)[0] for i in range(5)]
    torch.testing.assert_close(block.read(queries, state), torch.cat(wanted, dim=1))
    torch.testing.assert_close(block.read(queries), block.feed_forward(queries)[0])
