import pytest
import torch
from torch.nn import functional as F

from srwm.vision.max_pool import fused_max_pool_bias, fused_max_pool_bias_relu, max_pool_bias, max_pool_bias_relu

SIZES = [(2, 16, 8, 8), (1, 3, 7, 5), (3, 32, 1, 2), (2, 5, 9, 6)]


def torch_pool(x, bias):
    return F.max_pool2d(x + bias[:, None, None], 3, stride=2, padding=1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", [max_pool_bias, fused_max_pool_bias])
def test_maxima_and_gradients_are_those_of_pytorch(size, function):
    torch.manual_seed(0)
    x, bias = torch.randn(size, requires_grad=True), torch.randn(size[1], requires_grad=True)
    wanted = torch_pool(x, bias)
    dy = torch.randn_like(wanted)
    gradients = torch.autograd.grad(wanted, (x, bias), dy)
    y = function(x, bias)
    torch.testing.assert_close(y, wanted)
    torch.testing.assert_close(torch.autograd.grad(y, (x, bias), dy), gradients)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", [max_pool_bias_relu, fused_max_pool_bias_relu])
def test_maxima_come_with_their_relu_and_the_gradients_are_joined(size, function):
    x, bias = torch.randn(size, requires_grad=True), torch.randn(size[1], requires_grad=True)
    wanted = torch_pool(x, bias)
    gradients = (torch.randn_like(wanted), torch.randn_like(wanted))
    expected = torch.autograd.grad((wanted, wanted.relu()), (x, bias), gradients)
    both = function(x, bias)
    torch.testing.assert_close(both, (wanted, wanted.relu()))
    torch.testing.assert_close(torch.autograd.grad(both, (x, bias), gradients), expected)


def test_of_equal_pixels_the_first_gets_the_gradient():
    x = torch.zeros(1, 1, 4, 4, requires_grad=True)
    wanted = torch.autograd.grad(F.max_pool2d(x, 3, 2, 1).sum(), x)[0]
    assert torch.equal(torch.autograd.grad(fused_max_pool_bias(x, torch.zeros(1)).sum(), x)[0], wanted)


def test_nan_is_seen():
    x = torch.zeros(1, 1, 4, 4)
    x[0, 0, 1, 1] = torch.nan
    assert torch.isnan(fused_max_pool_bias(x, torch.zeros(1))).all()


def test_signs_that_are_not_in_memory_are_read():
    torch.manual_seed(0)
    x, bias, dy = torch.randn(2, 5, 9, 6), torch.randn(5), torch.randn(2, 5, 5, 3)
    plain = [x.clone().requires_grad_(), bias.clone().requires_grad_()]
    lazy = [torch._neg_view(-each).requires_grad_() for each in (x, bias)]
    y, wanted = fused_max_pool_bias(*lazy), fused_max_pool_bias(*plain)
    assert torch.equal(y, wanted)
    found = torch.autograd.grad(y, lazy, torch._neg_view(-dy))
    assert all(map(torch.equal, found, torch.autograd.grad(wanted, plain, dy)))


def test_the_numbers_of_a_bias_may_lie_apart():
    x, bias = torch.randn(2, 5, 9, 6), torch.randn(5, 2)[:, 0]
    assert torch.equal(fused_max_pool_bias(x, bias), fused_max_pool_bias(x, bias.contiguous()))
