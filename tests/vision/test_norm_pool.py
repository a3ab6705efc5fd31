"""The fused batch norm, pool and ReLU against PyTorch's own; the kernels run in Triton's interpreter."""

import numpy as np
import pytest
import torch
from torch import nn

from srwm.vision import norm_pool, norm_pool_relu
from srwm.vision.norm_pool import _fused

from .norms import by_pytorch, images, make_norm, outcome

pytest.importorskip("triton", reason="runs where Triton is installed")

SHAPES = [(2, 4, 6, 6), (3, 5, 7, 9), (1, 1, 2, 2), (4, 32, 5, 4), (2, 3, 3, 8), (2, 48, 2, 3)]
"""Even and odd sizes; channels that are a power of two and not; a single window."""


def assert_near(found, expected, limit=2e-6):
    for name, came, wanted in zip(found._fields, found, expected, strict=True):
        size = wanted.double().square().mean().sqrt().clamp(min=1e-2)
        distance = (came.double() - wanted.double()).square().mean().sqrt() / size
        assert distance <= limit, f"{name} lies {distance:.2e} from PyTorch's"


@pytest.fixture
def many_programs(monkeypatch):
    """Small tiles and few programs, so that sums run over several of both."""
    monkeypatch.setattr(norm_pool, "_ELEMENTS", 32)
    monkeypatch.setattr(norm_pool, "_MAX_PARTS", 3)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_gradients_and_running_statistics_equal_pytorchs(shape):
    x, norm = images(*shape), make_norm(shape[1])
    assert_near(outcome(_fused, x, norm), outcome(by_pytorch, x.double(), norm.double()))


@pytest.mark.usefixtures("many_programs")
@pytest.mark.parametrize("shape", [(5, 4, 7, 6), (3, 6, 4, 4)], ids=str)
def test_shares_of_the_work_add_up(shape):
    x, norm = images(*shape), make_norm(shape[1])
    assert_near(outcome(_fused, x, norm), outcome(by_pytorch, x.double(), norm.double()))


def test_a_bias_that_was_not_added_is_known_to_the_running_mean_alone():
    x, norm, bias = images(3, 5, 4, 4), make_norm(5), torch.randn(5)
    found = outcome(_fused, x, norm, bias)
    assert_near(found, outcome(by_pytorch, x.double(), norm.double(), bias.double()))
    assert torch.equal(found.y, outcome(_fused, x, norm.float()).y)


def test_a_large_mean_costs_no_accuracy():
    x, norm = images(3, 4, 6, 6) + 1000, make_norm(4)
    assert_near(outcome(_fused, x, norm), outcome(by_pytorch, x.double(), norm.double()), 1e-4)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_of_equal_pixels_the_first_gets_the_gradient(sign):
    # Two of the four are the largest, or the smallest where the scale is negative.
    window = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    x = window.repeat(1, 2, 2, 2).contiguous(memory_format=torch.channels_last)
    norm = make_norm(2)
    with torch.no_grad():
        norm.weight.fill_(sign)
        norm.bias.fill_(2.0)
    found = outcome(_fused, x, norm)
    assert_near(found, outcome(by_pytorch, x, norm))
    first, second = ((0, 1), (1, 0)) if sign > 0 else ((0, 0), (1, 1))
    for row in (0, 2):
        for column in (0, 2):
            first_dx, second_dx = (found.dx[..., row + i, column + j] for i, j in (first, second))
            assert (first_dx - second_dx).abs().min() > 1e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_only_what_is_stored(dtype):
    x, norm = images(3, 6, 7, 6).to(dtype), make_norm(6)
    found = outcome(_fused, x, norm)
    assert found.y.dtype == found.dx.dtype == dtype
    assert found.dweight.dtype == found.running_mean.dtype == torch.float32
    # What is stored is rounded by 2 ** -9 or 2 ** -12, and so is the incoming gradient.
    assert_near(found, outcome(by_pytorch, x.float(), norm), 1e-2 if dtype == torch.bfloat16 else 1e-3)


@pytest.mark.usefixtures("many_programs")
def test_equal_inputs_give_equal_bits():
    x, norm = images(3, 6, 7, 6), make_norm(6)
    for first, second in zip(outcome(_fused, x, norm), outcome(_fused, x, norm), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_stays_nan_in_its_channel_and_leaves_the_others_alone(place, bad):
    x, norm = images(2, 3, 4, 4), make_norm(3)
    clean = outcome(_fused, x, norm)
    x[0, 1].view(-1)[place] = bad
    with np.errstate(invalid="ignore"):  # Triton's interpreter computes with NumPy.
        found = outcome(_fused, x, norm)
    assert found.y[:, 1].isnan().all()
    assert found.dx[:, 1].isnan().all()
    assert found.running_mean[1].isfinite().item() is False
    assert torch.equal(found.y[:, [0, 2]], clean.y[:, [0, 2]])
    assert torch.equal(found.dx[:, [0, 2]], clean.dx[:, [0, 2]])


def test_images_in_the_other_layout_give_the_same():
    x, norm = images(2, 4, 6, 5), make_norm(4)
    for first, second in zip(outcome(_fused, x, norm), outcome(_fused, x.contiguous(), norm), strict=True):
        assert torch.equal(first, second)


def test_a_gradient_that_is_a_view_is_read_right():
    x, norm = images(2, 4, 4, 4).requires_grad_(), make_norm(4)
    # The gradient of a sum is one number, expanded.
    (first,) = torch.autograd.grad(_fused(x, norm, None).sum(), x)
    (second,) = torch.autograd.grad(by_pytorch(x, norm).sum(), x)
    assert torch.allclose(first, second, atol=1e-5)


def test_a_second_derivative_is_refused():
    x, norm = images(2, 2, 4, 4).requires_grad_(), make_norm(2)
    (gradient,) = torch.autograd.grad(_fused(x, norm, None).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("training", [True, False])
def test_where_no_kernel_runs_it_is_pytorchs_own(dtype, training):
    x, norm, bias = images(3, 5, 7, 6).to(dtype), make_norm(5).to(dtype).train(training), torch.randn(5, dtype=dtype)

    def by_modules(x, norm, bias):
        plain = nn.BatchNorm2d(5, momentum=norm.momentum, eps=norm.eps).to(dtype).train(training)
        plain.load_state_dict({**norm.state_dict(), "num_batches_tracked": torch.tensor(0)})
        return nn.functional.max_pool2d(plain(x + bias[:, None, None]), 2).relu()

    wanted = by_modules(x, norm, bias)
    limit = 1e-5 if dtype == torch.float32 else 1e-12
    assert torch.allclose(norm_pool_relu(x, norm, bias), wanted, rtol=0, atol=limit)


def test_float64_and_evaluation_go_past_the_kernels(monkeypatch):
    """On a GPU too: what says so here is that a tensor which claims to be there is not given to them."""
    asked = []
    monkeypatch.setattr(norm_pool, "_fused", lambda x, norm, bias: asked.append(x.dtype) or x)

    class Elsewhere(torch.Tensor):
        @property
        def is_cuda(self):
            return True

    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        x = images(2, 3, 4, 4).to(dtype).as_subclass(Elsewhere)
        norm_pool_relu(x, make_norm(3).to(dtype).eval(), None)
        norm_pool_relu(x, make_norm(3).to(dtype), None)
    assert asked == [torch.float32, torch.bfloat16]
