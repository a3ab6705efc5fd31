"""A layer that keeps the contract, and one for each way to break it."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Memory(NamedTuple):
    sums: Tensor

    def detach(self):
        return type(self)(self.sums.detach())

    def reset(self, is_first):
        return type(self)(self.sums.masked_fill(is_first[:, None], 0.0))


class Good(nn.Module):
    """A small recurrent layer that keeps every promise; those below break one each."""

    input_size = 3

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3))
        self.calls = 0

    def initial_state(self, batch_size):
        return Memory(self.weight.new_zeros(batch_size, 3))

    def forward(self, x, state=None, *, reset=None):
        sums = (self.initial_state(len(x)) if state is None else state).sums
        ys = []
        for t in range(x.shape[1]):
            if reset is not None:
                sums = self.forget(sums, reset[:, t, None])
            sums = torch.tanh(sums + x[:, t] @ self.weight)
            ys.append(self.show(sums))
        return torch.stack(ys, dim=1), Memory(sums)

    def forget(self, sums, is_first):
        return sums.masked_fill(is_first, 0.0)

    def show(self, sums):
        return sums

    def step(self, x_t, state=None, *, reset=None):
        y, state = self(x_t[:, None], state, reset=None if reset is None else reset[:, None])
        return y[:, 0], state


class ReturnsOnlyY(Good):
    def forward(self, x, state=None, *, reset=None):
        return super().forward(x, state, reset=reset)[0]


class TimeFirst(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y.transpose(0, 1), state


class AnotherDtype(Good):
    def show(self, sums):
        return sums.double()


class PlainTuple(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, None if state is None else Memory(*state), reset=reset)
        return y, tuple(state)


class DictState(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y, {"sums": state.sums}


class FeaturesFirst(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, None if state is None else Memory(state.sums.T), reset=reset)
        return y, Memory(state.sums.T)


class StartsFromOne(Good):
    def forward(self, x, state=None, *, reset=None):
        if state is None:
            state = Memory(torch.ones(len(x), 3))
        return super().forward(x, state, reset=reset)


class InitialStateOfOnes(Good):
    def initial_state(self, batch_size):
        return Memory(torch.ones(batch_size, 3))

    def forward(self, x, state=None, *, reset=None):
        return super().forward(x, Memory(torch.zeros(len(x), 3)) if state is None else state, reset=reset)


class IgnoresTheState(Good):
    def forward(self, x, state=None, *, reset=None):
        return super().forward(x, None, reset=reset)


class LooksAhead(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y + x.mean(dim=1, keepdim=True), state


class StateOfTheLastStepOnly(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y, Memory(state.sums * 0 + x[:, 0])


class StepOfAnotherShape(Good):
    def step(self, x_t, state=None, *, reset=None):
        y, state = super().step(x_t, state, reset=reset)
        return y[:, None], state


class StepForgets(Good):
    def step(self, x_t, state=None, *, reset=None):
        return super().step(x_t, None, reset=reset)


class IgnoresReset(Good):
    def forget(self, sums, is_first):
        return sums


class ResetsEveryRow(Good):
    def forget(self, sums, is_first):
        return sums * (1 - is_first.any().float())


class IgnoresResetAtTheFirstStep(Good):
    def forward(self, x, state=None, *, reset=None):
        if reset is not None:
            reset = reset.clone()
            reset[:, 0] = False
        return super().forward(x, state, reset=reset)


class ReadGoesOn(Good):
    def read(self, x, state=None):
        return super().forward(x, state)[0]


class StepIgnoresReset(Good):
    def step(self, x_t, state=None, *, reset=None):
        return super().step(x_t, state)


class GradientCrossesReset(Good):
    def forget(self, sums, is_first):
        return sums - torch.where(is_first, sums, torch.zeros_like(sums)).detach()


class DetachesSilently(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y, state.detach()


class DetachDoesNothing(Memory):
    def detach(self):
        return self


class DetachDoesNothingLayer(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y, DetachDoesNothing(*state)

    def initial_state(self, batch_size):
        return DetachDoesNothing(*super().initial_state(batch_size))


class DetachReturnsZeros(Memory):
    def detach(self):
        return DetachReturnsZeros(torch.zeros_like(self.sums))


class DetachReturnsZerosLayer(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y, DetachReturnsZeros(*state)

    def initial_state(self, batch_size):
        return DetachReturnsZeros(*super().initial_state(batch_size))


class ResetInPlace(Memory):
    def reset(self, is_first):
        self.sums[is_first] = 0
        return self


class ResetInPlaceLayer(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y, ResetInPlace(*state)

    def initial_state(self, batch_size):
        return ResetInPlace(*super().initial_state(batch_size))


class ResetOfEveryRow(Memory):
    def reset(self, is_first):
        return ResetOfEveryRow(torch.zeros_like(self.sums))


class ResetOfEveryRowLayer(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        return y, ResetOfEveryRow(*state)

    def initial_state(self, batch_size):
        return ResetOfEveryRow(*super().initial_state(batch_size))


class ChangesX(Good):
    def forward(self, x, state=None, *, reset=None):
        result = super().forward(x, state, reset=reset)
        with torch.no_grad():
            x.mul_(2)
        return result


class ChangesState(Good):
    def forward(self, x, state=None, *, reset=None):
        result = super().forward(x, state, reset=reset)
        if state is not None and not state.sums.requires_grad:
            state.sums.add_(1)
        return result


class ChangesReset(Good):
    def forward(self, x, state=None, *, reset=None):
        result = super().forward(x, state, reset=reset)
        if reset is not None:
            reset.fill_(False)
        return result


class CountsCalls(Good):
    def forward(self, x, state=None, *, reset=None):
        self.calls += 1
        return super().forward(x, state, reset=reset)


class KeepsItsState(Good):
    def forward(self, x, state=None, *, reset=None):
        y, state = super().forward(x, state, reset=reset)
        self._last = [state]
        return y, state


class KeepsABuffer(Good):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x, state=None, *, reset=None):
        self.mean.mul_(0.9).add_(x.detach().mean((0, 1)), alpha=0.1)
        return super().forward(x, state, reset=reset)


class Random(Good):
    def show(self, sums):
        return sums + torch.rand(())


class MixesRows(Good):
    def show(self, sums):
        return sums - sums.mean(dim=0)


class IdleParameter(Good):
    def __init__(self):
        super().__init__()
        self.idle = nn.Parameter(torch.ones(2))


class Raises(Good):
    def forward(self, x, state=None, *, reset=None):
        raise RuntimeError("not today")


class TakesNoReset(Good):
    def forward(self, x, state=None):
        return super().forward(x, state)


class HasNoStep(nn.Module):
    input_size = 3

    def __init__(self):
        super().__init__()
        self.inner = Good()

    def forward(self, x, state=None, *, reset=None):
        return self.inner(x, state, reset=reset)
