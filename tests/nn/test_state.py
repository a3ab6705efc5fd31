import copy
import subprocess
import sys

import pytest
import torch
from torch.utils import _pytree as pytree

from srwm.nn import (
    ConvolvedState,
    DeltaNetState,
    LSTMState,
    NoState,
    SelfReferentialState,
    SequenceState,
    SRDeltaNetState,
    State,
    map_state,
)


def ones(*shape, **options):
    return torch.ones(*shape, **options)


def self_referential_state():
    return SelfReferentialState(ones(3, 2, 4, 16), ones(3, dtype=torch.int64))


STATES = {
    "NoState": NoState,
    "SelfReferentialState": self_referential_state,
    "DeltaNetState": lambda: DeltaNetState(ones(3, 2, 4, 4)),
    "SRDeltaNetState": lambda: SRDeltaNetState(self_referential_state(), ones(3, 2, 4, 4)),
    "ConvolvedState": lambda: ConvolvedState(self_referential_state(), ones(3, 3, 8)),
    "LSTMState": lambda: LSTMState(ones(3, 1, 4), ones(3, 1, 4)),
    "SequenceState": lambda: SequenceState((self_referential_state(), NoState(), DeltaNetState(ones(3, 2, 4, 4)))),
}
IS_FIRST = torch.tensor([False, True, False])


@pytest.fixture(params=STATES)
def state(request):
    return STATES[request.param]()


def test_is_a_state(state):
    assert isinstance(state, State)


def test_reset_zeroes_the_named_rows_only(state):
    for leaf in pytree.tree_leaves(state.reset(IS_FIRST)):
        assert not leaf[1].any()
        assert leaf[[0, 2]].eq(1).all()


def test_reset_returns_a_new_state_and_leaves_the_old(state):
    before = copy.deepcopy(state)
    state.reset(IS_FIRST)
    assert all(map(torch.equal, pytree.tree_leaves(state), pytree.tree_leaves(before)))


def test_every_method_keeps_the_type(state):
    for result in (state.detach(), state.reset(IS_FIRST), state.to("cpu")):
        assert pytree.tree_structure(result) == pytree.tree_structure(state)


def test_to_moves_every_tensor(state):
    assert all(leaf.is_meta for leaf in pytree.tree_leaves(state.to("meta")))


def test_every_method_keeps_the_dtypes(state):
    dtypes = [leaf.dtype for leaf in pytree.tree_leaves(state)]
    for result in (state.detach(), state.reset(IS_FIRST), state.to("cpu")):
        assert [leaf.dtype for leaf in pytree.tree_leaves(result)] == dtypes


def test_detach_cuts_the_gradient():
    change = torch.ones(3, 2, 4, 16, requires_grad=True)
    state = SequenceState((SRDeltaNetState(SelfReferentialState(change * 2, torch.ones(3)), change[..., :4] * 2),))
    assert not any(leaf.requires_grad for leaf in pytree.tree_leaves(state.detach()))


def test_no_gradient_crosses_a_reset():
    change = torch.ones(3, 2, 4, 4, requires_grad=True)
    DeltaNetState(change).reset(IS_FIRST).fast_weight.sum().backward()
    assert change.grad.flatten(1).sum(1).tolist() == [32.0, 0.0, 32.0]


def test_a_reset_forgets_even_nan():
    state = DeltaNetState(torch.full((3, 2, 4, 4), float("nan"))).reset(IS_FIRST)
    assert not state.fast_weight[1].any()


def test_map_state_reaches_every_tensor_and_keeps_the_structure(state):
    halves = map_state(lambda rows: rows[:1], state)
    assert pytree.tree_structure(halves) == pytree.tree_structure(state)
    assert all(len(leaf) == 1 for leaf in pytree.tree_leaves(halves))


def test_map_state_refuses_what_is_not_a_state():
    with pytest.raises(ValueError, match="a state holds a dict; expected tensors"):
        map_state(torch.clone, SequenceState(({},)))


COMPILE = """
import torch
from srwm.nn import ConvolvedState, DeltaNetState, LSTMState, NoState, SelfReferentialState, SequenceState
from srwm.nn import SRDeltaNetState

slow = SelfReferentialState(torch.ones(3, 2, 4, 16), torch.ones(3, dtype=torch.int64))
fast = torch.ones(3, 2, 4, 4)
lstm = LSTMState(torch.ones(3, 1, 4), torch.ones(3, 1, 4))
convolved = ConvolvedState(slow, torch.ones(3, 3, 8))
state = SequenceState((slow, NoState(), DeltaNetState(fast), SRDeltaNetState(slow, fast), convolved, lstm))

def cut(state, is_first):
    return state.detach().reset(is_first)

is_first = torch.tensor([False, True, False])
found = torch.compile(cut, fullgraph=True, backend="aot_eager")(state, is_first)
assert str(found) == str(cut(state, is_first)), found
"""


def test_its_methods_compile_to_one_graph():
    # In a process of its own: the compiler cannot look through the shape checks of the test run here.
    subprocess.run([sys.executable, "-c", COMPILE], check=True)


@pytest.mark.usefixtures("as_installed")
def test_reset_refuses_a_mask_of_numbers():
    with pytest.raises(ValueError, match=r"is_first has dtype torch.int64; expected torch.bool"):
        DeltaNetState(ones(2, 1, 3, 3)).reset(torch.tensor([0, 1]))


@pytest.mark.usefixtures("as_installed")
def test_reset_refuses_a_mask_of_another_batch():
    with pytest.raises(ValueError, match=r"is_first has shape \[3\]; expected \[b\] = \[2\]"):
        DeltaNetState(ones(2, 1, 3, 3)).reset(IS_FIRST)
