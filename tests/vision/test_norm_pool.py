"""The fused batch norm, pool and ReLU against PyTorch's own; those of Triton run in its interpreter."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

from srwm.vision import norm_pool, norm_pool_relu
from srwm.vision.norm_pool import fused_norm_pool_relu

from .norms import by_pytorch, images, make_norm, outcome

SHAPES = [(2, 4, 6, 6), (3, 5, 7, 9), (1, 1, 2, 2), (4, 32, 5, 4), (2, 3, 3, 8), (2, 48, 2, 3)]
"""Even and odd sizes; channels that are a power of two and not; a single window."""


def assert_near(found, expected, limit=2e-6):
    for name, came, wanted in zip(found._fields, found, expected, strict=True):
        size = wanted.double().square().mean().sqrt().clamp(min=1e-2)
        distance = (came.double() - wanted.double()).square().mean().sqrt() / size
        assert distance <= limit, f"{name} lies {distance:.2e} from PyTorch's"


@pytest.fixture(params=["triton", "cpu"])
def backend(request):
    if request.param == "triton":
        pytest.importorskip("triton", reason="runs where Triton is installed")
    return request.param


@pytest.fixture
def fused(backend):
    """`norm_pool_relu` by the kernels of a backend."""
    return functools.partial(_by, backend)


def _by(backend, x, norm, bias=None):
    return fused_norm_pool_relu(x, norm, bias, backend)


@pytest.fixture
def many_programs(backend, monkeypatch):
    """Small tiles and few programs, so that sums run over several of both."""
    if backend == "triton":
        from srwm.vision import _norm_pool_triton

        monkeypatch.setattr(_norm_pool_triton, "_ELEMENTS", 32)
        monkeypatch.setattr(_norm_pool_triton, "_MAX_PARTS", 3)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_gradients_and_running_statistics_equal_pytorchs(fused, shape):
    x, norm = images(*shape), make_norm(shape[1])
    assert_near(outcome(fused, x, norm), outcome(by_pytorch, x.double(), norm.double()))


@pytest.mark.usefixtures("many_programs")
@pytest.mark.parametrize("shape", [(5, 4, 7, 6), (3, 6, 4, 4)], ids=str)
def test_shares_of_the_work_add_up(fused, shape):
    x, norm = images(*shape), make_norm(shape[1])
    assert_near(outcome(fused, x, norm), outcome(by_pytorch, x.double(), norm.double()))


def test_a_bias_that_was_not_added_is_known_to_the_running_mean_alone(fused):
    x, norm, bias = images(3, 5, 4, 4), make_norm(5), torch.randn(5)
    found = outcome(fused, x, norm, bias)
    assert_near(found, outcome(by_pytorch, x.double(), norm.double(), bias.double()))
    assert torch.equal(found.y, outcome(fused, x, norm.float()).y)


def test_a_large_mean_costs_no_accuracy(fused):
    x, norm = images(3, 4, 6, 6) + 1000, make_norm(4)
    assert_near(outcome(fused, x, norm), outcome(by_pytorch, x.double(), norm.double()), 1e-4)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_of_equal_pixels_the_first_gets_the_gradient(fused, sign):
    # Two of the four are the largest, or the smallest where the scale is negative.
    window = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    x = window.repeat(1, 2, 2, 2).contiguous(memory_format=torch.channels_last)
    norm = make_norm(2)
    with torch.no_grad():
        norm.weight.fill_(sign)
        norm.bias.fill_(2.0)
    found = outcome(fused, x, norm)
    assert_near(found, outcome(by_pytorch, x, norm))
    first, second = ((0, 1), (1, 0)) if sign > 0 else ((0, 0), (1, 1))
    for row in (0, 2):
        for column in (0, 2):
            first_dx, second_dx = (found.dx[..., row + i, column + j] for i, j in (first, second))
            assert (first_dx - second_dx).abs().min() > 1e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_only_what_is_stored(dtype):
    pytest.importorskip("triton", reason="runs where Triton is installed")
    fused = functools.partial(_by, "triton")
    x, norm = images(3, 6, 7, 6).to(dtype), make_norm(6)
    found = outcome(fused, x, norm)
    assert found.y.dtype == found.dx.dtype == dtype
    assert found.dweight.dtype == found.running_mean.dtype == torch.float32
    # What is stored is rounded by 2 ** -9 or 2 ** -12, and so is the incoming gradient.
    assert_near(found, outcome(by_pytorch, x.float(), norm), 1e-2 if dtype == torch.bfloat16 else 1e-3)


@pytest.mark.usefixtures("many_programs")
def test_equal_inputs_give_equal_bits(fused):
    x, norm = images(3, 6, 7, 6), make_norm(6)
    for first, second in zip(outcome(fused, x, norm), outcome(fused, x, norm), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_stays_nan_in_its_channel_and_leaves_the_others_alone(fused, place, bad):
    x, norm = images(2, 3, 4, 4), make_norm(3)
    clean = outcome(fused, x, norm)
    x[0, 1].view(-1)[place] = bad
    with np.errstate(invalid="ignore"):  # Triton's interpreter computes with NumPy.
        found = outcome(fused, x, norm)
    assert found.y[:, 1].isnan().all()
    assert found.dx[:, 1].isnan().all()
    assert found.running_mean[1].isfinite().item() is False
    assert torch.equal(found.y[:, [0, 2]], clean.y[:, [0, 2]])
    assert torch.equal(found.dx[:, [0, 2]], clean.dx[:, [0, 2]])


def test_images_in_the_other_layout_give_the_same(fused):
    x, norm = images(2, 4, 6, 5), make_norm(4)
    for first, second in zip(outcome(fused, x, norm), outcome(fused, x.contiguous(), norm), strict=True):
        assert torch.equal(first, second)


def test_a_gradient_that_is_a_view_is_read_right(fused):
    x, norm = images(2, 4, 4, 4).requires_grad_(), make_norm(4)
    # The gradient of a sum is one number, expanded.
    (first,) = torch.autograd.grad(fused(x, norm, None).sum(), x)
    (second,) = torch.autograd.grad(by_pytorch(x, norm).sum(), x)
    assert torch.allclose(first, second, atol=1e-5)


def test_signs_that_are_not_in_memory_are_read(fused):
    x, norm = images(2, 4, 6, 5), make_norm(4)
    dy, results = torch.randn(2, 4, 3, 2), []
    for make in (torch.clone, lambda tensor: torch._neg_view(-tensor)):
        given = make(x).requires_grad_()
        y = fused(given, norm, None)
        results.append((y, *torch.autograd.grad(y, (given, norm.weight, norm.bias), make(dy))))
    assert all(map(torch.equal, *results))


def test_a_second_derivative_is_refused(fused):
    x, norm = images(2, 2, 4, 4).requires_grad_(), make_norm(2)
    (gradient,) = torch.autograd.grad(fused(x, norm, None).square().sum(), x, create_graph=True)
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


def test_several_threads_give_the_same_bits():
    x, norm = images(40, 6, 7, 6), make_norm(6)
    one = outcome(functools.partial(_by, "cpu"), x, norm)
    torch.set_num_threads(3)
    three = outcome(functools.partial(_by, "cpu"), x, norm)
    torch.set_num_threads(1)
    for first, second in zip(one, three, strict=True):
        assert torch.equal(first, second)


def test_which_kernels_serve_which_images():
    """What claims to be on a GPU is not looked at, only given away."""

    class Elsewhere(torch.Tensor):
        @property
        def is_cuda(self):
            return True

    x = images(2, 3, 4, 4)
    here = {dtype: norm_pool._backend(x.to(dtype)) for dtype in (torch.float64, torch.float32, torch.bfloat16)}
    assert here == {torch.float64: None, torch.float32: "cpu", torch.bfloat16: None}
    there = {dtype: norm_pool._backend(x.to(dtype).as_subclass(Elsewhere)) for dtype in here}
    assert there == {torch.float64: None, torch.float32: "triton", torch.bfloat16: "triton"}


def test_evaluation_goes_past_the_kernels(monkeypatch):
    def refuse(*_):
        raise AssertionError("a kernel was asked")

    monkeypatch.setattr(norm_pool, "fused_norm_pool_relu", refuse)
    x, norm = images(2, 3, 4, 4), make_norm(3)
    norm_pool_relu(x, norm.eval())
    with pytest.raises(AssertionError, match="a kernel was asked"):
        norm_pool_relu(x, norm.train())
