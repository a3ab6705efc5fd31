"""Adam's state under names, and steps recorded on a GPU."""

import pytest
import torch
from torch import nn

from srwm.runs.adam import adam_state
from srwm.runs.cuda_graph import record


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def named(model, **options):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, betas=(0.9, 0.995), eps=1e-9, fused=True, **options)
    return optimizer, adam_state(optimizer, model.named_parameters())


def step(model, optimizer, number):
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(number))
    optimizer.zero_grad()
    (model(x) - x.sum(dim=1, keepdim=True)).square().mean().backward()
    optimizer.step()


def test_a_state_that_is_there_from_the_start_changes_nothing():
    one, other = network(), network()
    optimizer, _ = named(one)
    plain = torch.optim.Adam(other.parameters(), lr=0.1, betas=(0.9, 0.995), eps=1e-9, fused=True)
    for number in range(4):
        step(one, optimizer, number)
        step(other, plain, number)
    for mine, wanted in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, wanted)


def test_the_tensors_are_named_and_are_the_state_itself():
    model = network()
    optimizer, state = named(model)
    wanted = {f"{name}/{part}" for name, _ in model.named_parameters() for part in ("step", "exp_avg", "exp_avg_sq")}
    assert state.keys() == wanted
    before = {name: tensor.data_ptr() for name, tensor in state.items()}
    step(model, optimizer, 0)
    assert {name: tensor.data_ptr() for name, tensor in state.items()} == before
    assert state["0.weight/step"] == 1
    assert state["0.weight/exp_avg"].abs().sum() > 0
    assert state["0.weight/exp_avg"] is optimizer.state[model[0].weight]["exp_avg"]


def test_copying_into_the_tensors_goes_back_to_where_they_came_from():
    model = network()
    optimizer, state = named(model)
    step(model, optimizer, 0)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    saved = {name: tensor.clone() for name, tensor in state.items()}
    for number in (1, 2):
        step(model, optimizer, number)
    wanted = [parameter.clone() for parameter in model.parameters()]

    other = network()
    optimizer, state = named(other)
    other.load_state_dict(weights)
    for name, tensor in state.items():
        tensor.copy_(saved[name])
    for number in (1, 2):
        step(other, optimizer, number)
    for found, parameter in zip(other.parameters(), wanted, strict=True):
        assert torch.equal(found, parameter)


def test_the_state_lies_in_memory_as_its_parameter_does():
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    _, state = named(model)
    assert state["weight/exp_avg"].stride() == model.weight.stride()


def test_a_gradient_that_is_not_finite_moves_neither_weights_nor_state():
    model = network()
    optimizer, state = named(model)
    before = {name: tensor.clone() for name, tensor in {**state, **model.state_dict()}.items()}
    optimizer.found_inf = torch.ones(())
    step(model, optimizer, 0)
    for name, tensor in {**state, **model.state_dict()}.items():
        assert torch.equal(tensor, before[name]), name


@pytest.mark.gpu
def test_a_recorded_step_does_the_same_as_the_step_itself():
    total, number = torch.zeros(3, device="cuda"), torch.zeros((), device="cuda")

    def add():
        number.add_(1)
        total.add_(number)

    replay = record(add)
    total.zero_()
    number.zero_()
    for _ in range(3):
        replay()
    assert (total.tolist(), number.item()) == ([6.0] * 3, 3.0)


def test_steps_are_counted_in_float32_whatever_the_default_is():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        parameter = nn.Parameter(torch.zeros(3))
        state = adam_state(torch.optim.Adam([parameter], fused=True), [("x", parameter)])
    finally:
        torch.set_default_dtype(before)
    assert state["x/step"].dtype == torch.float32
    assert state["x/exp_avg"].dtype == state["x/exp_avg_sq"].dtype == torch.float64
