"""The last step of each matrix is that which a recorder sees last, and watching leaves nothing behind."""

import doctest

import pytest
import torch

import srwm.inspect.last_step
from srwm.inspect import Recorder, last_steps
from srwm.nn import SequenceModel


def model_of(memory, **options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_heads": 2, "num_layers": 2, "ff_size": 8}
    return SequenceModel(5, 3, memory=memory, memory_options=options, **sizes)


@pytest.mark.parametrize("options", [{}, {"forget_gates": 2, "key_map": "l2"}, {"reset_every": 2}])
def test_it_is_the_step_that_a_recorder_sees_last(options):
    model, x = model_of("srwm", **options), torch.randn(2, 5, 5)
    with last_steps(model) as steps, Recorder(model) as recorder:
        model(x)
    records = recorder.finish()
    assert list(steps) == [record.name for record in records]
    for record, step in zip(records, steps.values(), strict=True):
        assert torch.equal(step.beta, record.beta[:, -1])
        assert torch.equal(step.forget, record.forget[:, -1])
        assert torch.equal(step.change, record.changes()[:, -1])


def test_of_other_matrices_nothing_is_said():
    model = model_of("sr_deltanet")
    with last_steps(model) as steps:
        model(torch.randn(1, 2, 5))
    assert [name.rpartition("/")[2] for name in steps] == ["slow", "slow"]


def test_hooks_are_gone_after_an_error_too():
    model = model_of("srwm")
    with pytest.raises(KeyError), last_steps(model):
        raise KeyError
    assert [len(part._forward_hooks) for part in model.modules()] == [0] * len(list(model.modules()))


def test_the_example_in_the_docstring_is_right():
    assert doctest.testmod(srwm.inspect.last_step, extraglobs={"torch": torch}) == (0, 4)
