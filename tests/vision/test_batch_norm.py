"""Batch norm in one process; what several do together is in `tests/fewshot/test_two_processes.py`."""

import pytest
import torch
from torch import nn

from srwm.vision import BatchNorm

from .norms import images, make_norm


def twin(norm):
    """PyTorch's own batch norm, with the same weights and statistics."""
    plain = nn.BatchNorm2d(len(norm.weight), momentum=norm.momentum, eps=norm.eps).to(norm.weight.dtype)
    plain.load_state_dict({**norm.state_dict(), "num_batches_tracked": torch.tensor(0)})
    return plain.train(norm.training)


def gradients(module, x, *more):
    x = x.clone().requires_grad_()
    y = module(x, *more)
    y.square().mul(torch.linspace(-1, 1, y.numel()).view_as(y)).sum().backward()
    return [y.detach(), x.grad, module.weight.grad, module.bias.grad, module.running_mean, module.running_var]


@pytest.mark.parametrize("training", [True, False])
def test_it_is_pytorchs_batch_norm(training):
    x, norm = images(4, 3, 5, 6), make_norm(3).train(training)
    plain = twin(norm)
    for found, wanted in zip(gradients(norm, x), gradients(plain, x), strict=True):
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("training", [True, False])
def test_a_missing_constant_counts_as_if_it_had_been_added(training):
    x, norm, missing = images(4, 3, 5, 6).double(), make_norm(3).double().train(training), torch.randn(3).double()
    wanted = gradients(twin(norm), x + missing[:, None, None])
    for one, other in zip(gradients(norm, x, missing), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_no_gradient_goes_to_a_missing_constant():
    missing = torch.randn(3, requires_grad=True)
    make_norm(3)(images(2, 3, 4, 4), missing).sum().backward()
    assert missing.grad is None


def test_evaluation_leaves_the_running_statistics_alone():
    norm = make_norm(3).eval()
    before = {name: tensor.clone() for name, tensor in norm.state_dict().items()}
    norm(images(2, 3, 4, 4), torch.randn(3))
    assert all(torch.equal(tensor, before[name]) for name, tensor in norm.state_dict().items())


def test_a_new_norm_normalises():
    y = BatchNorm(3)(images(8, 3, 6, 6))
    assert torch.allclose(y.mean(dim=(0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert torch.allclose(y.var(dim=(0, 2, 3), unbiased=False), torch.ones(3), atol=1e-3)
