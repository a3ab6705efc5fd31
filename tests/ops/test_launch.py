"""Calls of Triton kernels through `Launcher`: with a stand-in for Triton, since there is no GPU."""

import torch

from srwm.ops._launch import Launcher


class StandIn:
    """Says what it was called with; what it compiles does, too."""

    arg_names = ("x", "y", "steps", "WIDE", "SAVE", "SIZE")

    def __init__(self, compiles=True):
        self.calls, self.compiles = [], compiles

    def __getitem__(self, grid):
        def run(*args, **constants):
            self.calls.append(("kernel", grid, args, constants))
            return Compiled(self.calls) if self.compiles else None

        return run


class Compiled:
    def __init__(self, calls):
        self.calls = calls

    def __getitem__(self, grid):
        return lambda *args: self.calls.append(("compiled", grid, args))


CONSTANTS = {"SIZE": 16, "WIDE": 4, "num_warps": 2}


def launch(launcher, x, y, steps=3, save=True):
    launcher((8, 2), (x, y, steps), SAVE=save)


def kinds(stand_in):
    return [call[0] for call in stand_in.calls]


def test_a_second_call_runs_what_the_first_compiled_with_the_constants_in_their_order():
    stand_in, x, y = StandIn(), torch.zeros(4), torch.zeros(5)
    launcher = Launcher(stand_in, CONSTANTS)
    launch(launcher, x, y)
    launch(launcher, y, x, steps=7)
    first, second = stand_in.calls
    assert first[:3] == ("kernel", (8, 2), (x, y, 3))
    assert first[3] == {"SAVE": True, **CONSTANTS}
    assert second[:2] == ("compiled", (8, 2, 1))
    assert [id(each) for each in second[2][:2]] == [id(y), id(x)]
    assert second[2][2:] == (7, 4, True, 16)


def test_other_dtypes_and_flags_are_compiled_anew():
    stand_in, x, y = StandIn(), torch.zeros(4), torch.zeros(5)
    launcher = Launcher(stand_in, CONSTANTS)
    launch(launcher, x, y)
    launch(launcher, x.half(), y)
    launch(launcher, x, y.double())
    launch(launcher, x, y, save=False)
    assert kinds(stand_in) == ["kernel"] * 4
    launch(launcher, x.half(), y)
    launch(launcher, x, y, save=False)
    assert kinds(stand_in)[4:] == ["compiled"] * 2


def test_memory_that_is_not_aligned_goes_through_triton_itself():
    stand_in, x = StandIn(), torch.zeros(9)
    launcher = Launcher(stand_in, CONSTANTS)
    launch(launcher, x, x)
    launch(launcher, x, x[1:])
    launch(launcher, x[1:], x)
    assert x[1:].data_ptr() % 16
    assert kinds(stand_in) == ["kernel"] * 3


def test_the_interpreter_which_compiles_nothing_is_called_every_time():
    stand_in, x = StandIn(compiles=False), torch.zeros(4)
    launcher = Launcher(stand_in, CONSTANTS)
    launch(launcher, x, x)
    launch(launcher, x, x)
    assert kinds(stand_in) == ["kernel"] * 2
