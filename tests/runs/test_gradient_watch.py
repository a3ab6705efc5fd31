"""The guard against NaN."""

import math

import pytest
import torch
from torch import nn

from srwm.runs.gradient_watch import GradientWatch, NonFiniteError

NAN, INF = float("nan"), float("inf")


def make_model(dtype=torch.float32, device="cpu"):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(device, dtype)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    return model


def observe(watch, step, loss=1.0):
    device = watch.grad_norm.device
    return watch.observe(torch.tensor(step, device=device), torch.tensor(loss, device=device)).item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_finite_gradients_pass_and_their_norm_is_right(dtype):
    model = make_model(dtype)
    watch = GradientWatch(model.named_parameters(), "cpu")
    assert observe(watch, 0) == 0.0
    watch.check()
    wanted = torch.cat([parameter.grad.double().reshape(-1) for parameter in model.parameters()]).norm()
    torch.testing.assert_close(watch.grad_norm.double(), wanted, rtol=1e-6, atol=0)


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_one_bad_number_is_found_by_name_and_step(value):
    model = make_model()
    watch = GradientWatch(model.named_parameters(), "cpu")
    observe(watch, 311)
    model[2].weight.grad[1, 2] = value
    assert observe(watch, 312, loss=0.75) == 1.0
    with pytest.raises(NonFiniteError) as caught:
        watch.check()
    assert str(caught.value) == "the gradient of 2.weight is not finite at step 312 (loss 0.75)"


def test_the_first_bad_step_is_remembered_and_no_later_step_counts_as_good():
    model = make_model()
    watch = GradientWatch(model.named_parameters(), "cpu")
    model[0].bias.grad[0] = NAN
    observe(watch, 5, loss=NAN)
    model[0].bias.grad[0] = 0.0
    model[2].bias.grad[0] = NAN
    observe(watch, 6)
    model[2].bias.grad[0] = 0.0
    assert observe(watch, 7) == 1.0
    with pytest.raises(NonFiniteError, match=r"^the gradient of 0\.bias is not finite at step 5 \(loss nan\)$"):
        watch.check()


def test_many_bad_gradients_are_counted():
    model = make_model()
    watch = GradientWatch(model.named_parameters(), "cpu")
    for parameter in model.parameters():
        parameter.grad.fill_(NAN)
    observe(watch, 1)
    with pytest.raises(NonFiniteError, match=r"gradients of 0\.weight, 0\.bias, 2\.weight and 1 more are not finite"):
        watch.check()


def test_a_bad_loss_alone_is_found():
    watch = GradientWatch(make_model().named_parameters(), "cpu")
    assert observe(watch, 3, loss=INF) == 1.0
    with pytest.raises(NonFiniteError, match="the loss is inf at step 3, while every gradient is finite"):
        watch.check()


def test_parameters_without_gradient_are_passed_over():
    model = make_model()
    model[0].weight.grad = None
    model[0].bias.requires_grad_(False)
    watch = GradientWatch(model.named_parameters(), "cpu")
    assert observe(watch, 0) == 0.0
    model[2].bias.grad[0] = NAN
    observe(watch, 1)
    with pytest.raises(NonFiniteError, match=r"of 2\.bias is not finite at step 1"):
        watch.check()
    model.zero_grad()
    assert observe(GradientWatch(model.named_parameters(), "cpu"), 0) == 0.0


def test_a_large_half_precision_gradient_is_not_called_infinite():
    model = make_model(torch.float16)
    for parameter in model.parameters():
        parameter.grad.fill_(60_000)
    watch = GradientWatch(model.named_parameters(), "cpu")
    assert observe(watch, 0) == 0.0


def train(watch, model, optimizer, step, bad):
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    if bad:
        model[2].weight.grad[0, 0] = NAN
    optimizer.found_inf = watch.observe(torch.tensor(step), torch.tensor(1.0))
    optimizer.step()


def test_a_fused_optimizer_keeps_the_weights_from_before_the_first_bad_step():
    model = make_model()
    watch = GradientWatch(model.named_parameters(), "cpu")
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    train(watch, model, optimizer, 0, bad=False)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    train(watch, model, optimizer, 1, bad=True)
    train(watch, model, optimizer, 2, bad=False)
    for parameter, wanted in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter, wanted)


@pytest.mark.gpu
def test_in_a_cuda_graph_the_first_bad_step_is_found():
    model = make_model(device="cuda")
    watch = GradientWatch(model.named_parameters(), "cuda")
    step, loss = torch.zeros((), dtype=torch.int64, device="cuda"), torch.ones((), device="cuda")
    rate = torch.tensor(0.1, device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), fused=True, capturable=True, lr=rate)

    def do_step():
        optimizer.found_inf = watch.observe(step, loss)
        optimizer.step()
        step.add_(1)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        do_step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        do_step()
    graph.replay()
    watch.check()
    model[2].weight.grad[0, 0] = NAN
    before = model[0].weight.detach().clone()
    graph.replay()
    model[2].weight.grad[0, 0] = 0.0
    graph.replay()
    assert torch.equal(model[0].weight, before)
    with pytest.raises(NonFiniteError, match=r"of 2\.weight is not finite at step 2 "):
        watch.check()


@pytest.mark.parametrize(("bad", "said"), [(3, "a, b, c are"), (5, "a, b, c and 2 more are")])
def test_of_many_bad_gradients_the_first_three_are_named(bad, said):
    parameters = [(name, nn.Parameter(torch.zeros(2))) for name in "abcde"]
    for i, (_, parameter) in enumerate(parameters):
        parameter.grad = torch.full((2,), math.inf if i < bad else 1.0)
    watch = GradientWatch(parameters, torch.device("cpu"))
    watch.observe(torch.tensor(7), torch.tensor(0.5))
    with pytest.raises(NonFiniteError, match=f"^the gradients of {said} not finite at step 7 "):
        watch.check()
