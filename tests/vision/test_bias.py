"""Biases with what comes after them, by PyTorch and by the kernels (in Triton's interpreter)."""

import pytest
import torch

from srwm.vision import _bias_triton
from srwm.vision.bias import add_bias, add_bias_relu, bias_relu, fused_add_bias, fused_add_bias_relu, fused_bias_relu

SIZES = [(2, 16, 8, 8), (1, 3, 7, 5), (3, 32, 1, 2)]


def tensors(size, dtype=torch.float32):
    torch.manual_seed(0)
    x, skip, dy = (torch.randn(size, dtype=dtype) for _ in range(3))
    return x.requires_grad_(), skip.requires_grad_(), torch.randn(size[1], requires_grad=True), dy


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", [bias_relu, fused_bias_relu])
def test_bias_and_relu_and_their_gradients_are_those_of_pytorch(size, function):
    x, _, bias, dy = tensors(size)
    wanted = (x + bias[:, None, None]).relu()
    y = function(x, bias)
    torch.testing.assert_close(y, wanted)
    torch.testing.assert_close(torch.autograd.grad(y, (x, bias), dy), torch.autograd.grad(wanted, (x, bias), dy))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", [add_bias, fused_add_bias])
def test_the_residual_sum_and_its_gradients_are_those_of_pytorch(size, function):
    x, skip, bias, dy = tensors(size)
    wanted = x + skip + bias[:, None, None]
    y = function(x, skip, bias)
    torch.testing.assert_close(y, wanted)
    found = torch.autograd.grad(y, (x, skip, bias), dy)
    torch.testing.assert_close(found, torch.autograd.grad(wanted, (x, skip, bias), dy))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", [add_bias_relu, fused_add_bias_relu])
def test_the_residual_sum_comes_with_its_relu_and_their_gradients_are_joined(size, function):
    x, skip, bias, dy = tensors(size)
    wanted = x + skip + bias[:, None, None]
    both = function(x, skip, bias)
    torch.testing.assert_close(both, (wanted, wanted.relu()))
    gradients = (dy, torch.randn(size))
    found = torch.autograd.grad(both, (x, skip, bias), gradients)
    torch.testing.assert_close(found, torch.autograd.grad((wanted, wanted.relu()), (x, skip, bias), gradients))


def test_several_programs_add_up_all_pixels(monkeypatch):
    monkeypatch.setattr(_bias_triton, "_ELEMENTS", 8)
    monkeypatch.setattr(_bias_triton, "_MOST_SUMS", 3)
    x, _, bias, dy = tensors((2, 4, 5, 3))
    y = fused_bias_relu(x, bias)
    wanted = (x + bias[:, None, None]).relu()
    torch.testing.assert_close(torch.autograd.grad(y, (x, bias), dy), torch.autograd.grad(wanted, (x, bias), dy))


def test_the_gradient_of_a_bias_is_added_up_in_float32():
    x, _, bias, _ = tensors((4, 2, 32, 32), torch.bfloat16)
    ones = torch.ones_like(x)
    skip = torch.zeros_like(x)
    # 4,096 ones: bfloat16 would stop at 256.
    (total,) = torch.autograd.grad(fused_add_bias(x, skip, bias), bias, ones)
    assert total.tolist() == [4096, 4096]


def lazily(tensor):
    """The same values, with a sign that is not in memory."""
    return torch._neg_view(-tensor).requires_grad_()


def test_the_numbers_of_a_bias_may_lie_apart():
    x, _, bias, _ = tensors((2, 16, 8, 8))
    apart = torch.stack([bias, torch.full_like(bias, torch.nan)], dim=1)[:, 0]
    assert torch.equal(fused_bias_relu(x, apart), fused_bias_relu(x, bias))
    assert torch.equal(fused_add_bias(x, x, apart), fused_add_bias(x, x, bias))


def test_signs_that_are_not_in_memory_are_read():
    x, skip, bias, dy = (each.detach() for each in tensors((2, 16, 8, 8)))
    for function, given in ((fused_bias_relu, (x, bias)), (fused_add_bias, (x, skip, bias))):
        plain, lazy = ([make(each) for each in given] for make in (torch.Tensor.requires_grad_, lazily))
        y, wanted = function(*lazy), function(*plain)
        assert torch.equal(y, wanted)
        found = torch.autograd.grad(y, lazy, lazily(dy).detach())
        assert all(map(torch.equal, found, torch.autograd.grad(wanted, plain, dy)))


def test_nan_stays_nan():
    x = torch.full((1, 1, 1, 2), torch.nan)
    assert torch.isnan(fused_bias_relu(x, torch.zeros(1))).all()
