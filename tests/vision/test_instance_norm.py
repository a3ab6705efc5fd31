"""The fused instance norm, pool and ReLU against PyTorch's own, in Triton's interpreter."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.vision import Conv4, InstanceNorm, instance_norm_pool_relu

SHAPES = [(2, 4, 6, 6), (3, 5, 7, 9), (1, 1, 2, 2), (4, 32, 5, 4), (2, 3, 3, 8), (2, 48, 2, 3)]
"""Even and odd sizes; channels that are a power of two and not; a single window."""


class Outcome(NamedTuple):
    y: Tensor
    dx: Tensor
    dweight: Tensor
    dbias: Tensor


def make_norm(channels):
    norm = InstanceNorm(channels)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(channels))
        norm.bias.copy_(torch.randn(channels))
    return norm


def images(n, c, h, w):
    return torch.randn(n, c, h, w).contiguous(memory_format=torch.channels_last)


def outcome(function, x, norm):
    x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    y = function(x, norm)
    # Random weights and something that is not linear: a sum would hide faults.
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y.dtype)
    gradients = torch.autograd.grad((weights * y + y.square()).sum(), (x, norm.weight, norm.bias))
    return Outcome(y.detach(), *gradients)


def by_hand(x, norm):
    """The equations, one a line."""
    mean = x.mean(dim=(2, 3), keepdim=True)
    variance = (x - mean).square().mean(dim=(2, 3), keepdim=True)
    z = (x - mean) / (variance + norm.eps).sqrt()
    return F.max_pool2d(z * norm.weight[:, None, None] + norm.bias[:, None, None], 2).relu()


@pytest.fixture
def fused():
    pytest.importorskip("triton", reason="runs where Triton is installed")
    from srwm.vision.instance_norm import fused_instance_norm_pool_relu

    return fused_instance_norm_pool_relu


def assert_near(found, expected, limit=2e-6):
    for name, came, wanted in zip(found._fields, found, expected, strict=True):
        size = wanted.double().square().mean().sqrt().clamp(min=1e-2)
        distance = (came.double() - wanted.double()).square().mean().sqrt() / size
        assert distance <= limit, f"{name} lies {distance:.2e} from the equations"


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_kernels_values_and_gradients_equal_the_equations(fused, shape):
    x, norm = images(*shape), make_norm(shape[1])
    found = outcome(fused, x, norm)
    assert_near(found, outcome(by_hand, x.double(), norm.double()))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pytorchs_operators_equal_the_equations(shape):
    x, norm = images(*shape), make_norm(shape[1])
    found = outcome(instance_norm_pool_relu, x, norm)
    assert_near(found, outcome(by_hand, x.double(), norm.double()))


def test_programs_that_share_the_channels_of_an_image_give_the_same(fused, monkeypatch):
    from srwm.vision import _instance_norm_triton

    x, norm = images(3, 20, 4, 5), make_norm(20)
    whole = outcome(fused, x, norm)
    monkeypatch.setattr(_instance_norm_triton, "_ELEMENTS", 8)
    assert all(torch.equal(one, other) for one, other in zip(whole, outcome(fused, x, norm), strict=True))


def test_a_large_mean_costs_no_accuracy(fused):
    x, norm = images(3, 4, 6, 6) + 1000, make_norm(4)
    assert_near(outcome(fused, x, norm), outcome(by_hand, x.double(), norm.double()), 1e-4)


def test_an_image_is_seen_alike_whatever_else_is_in_the_batch_and_in_training_and_evaluation():
    network, x = Conv4(1, 16, channels=4, norm="instance"), torch.rand(5, 1, 16, 16)
    features = network(x)
    assert torch.allclose(network(x[2:3]), features[2:3], atol=1e-6)
    assert torch.equal(network.eval()(x), features)


def test_a_nan_stays_one(fused):
    x, norm = images(2, 3, 4, 4), make_norm(3)
    x[1, 2, 0, 1] = torch.nan
    y = fused(x, norm)
    assert y[1, 2].isnan().all()
    assert not y[0].isnan().any()
