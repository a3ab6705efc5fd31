"""The fused kernels on a GPU; runs under pytest, and where there is none as `python tests/vision/test_gpu.py`.

With names of tests behind it, only those.
"""

import functools
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

try:
    import pytest
except ImportError:  # The machine with the GPU may have little more than torch and Triton.
    pytest = None

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from srwm.runs.devices import set_tf32
from srwm.vision import Conv4, Impala, InstanceNorm, instance_norm_pool_relu, norm_pool_relu
from srwm.vision.bias import add_bias, bias_relu
from srwm.vision.frames import to_images
from vision.norms import by_pytorch, images, make_norm, outcome

pytestmark = pytest.mark.gpu if pytest else None

DEVICE = "cuda"
SHAPES = [(768, 64, 28, 28), (768, 64, 14, 14), (100, 64, 7, 7), (64, 32, 21, 21), (3, 5, 7, 9), (1, 1, 2, 2)]
"""Those of Conv-4 on Omniglot and mini-ImageNet, and odd ones."""


def assert_near(found, expected, limit):
    """Compare by the root mean square of the difference, relative to that of what is expected."""
    for name, came, wanted in zip(found._fields, found, expected, strict=True):
        size = wanted.double().square().mean().sqrt().clamp(min=1e-2)
        distance = (came.double() - wanted.double()).square().mean().sqrt() / size
        assert distance <= limit, f"{name} lies {distance:.2e} away"


def make(shape, dtype=torch.float32):
    torch.manual_seed(0)
    return images(*shape, device=DEVICE).to(dtype), make_norm(shape[1], device=DEVICE)


def truth(x, norm, bias=None):
    return outcome(by_pytorch, x.double(), norm.double(), None if bias is None else bias.double())


def test_float32_agrees_with_float64():
    for shape in SHAPES:
        x, norm = make(shape)
        found = outcome(norm_pool_relu, x, norm)
        wanted = truth(x, norm)
        # Windows whose two best pixels are closer than float32 can tell give their gradient to the other one.
        assert_near(found, wanted, 1e-3)
        assert torch.allclose(found.y.double(), wanted.y, rtol=0, atol=1e-4)


def test_bfloat16_agrees_with_float64_on_the_same_numbers():
    for shape in SHAPES:
        x, norm = make(shape, torch.bfloat16)
        found = outcome(norm_pool_relu, x, norm)
        assert found.y.dtype == torch.bfloat16
        # Only what is stored is rounded, and the gradient that comes in.
        assert_near(found, truth(x, norm), 1e-2)


def instance_outcome(function, x, norm):
    """The pooled images, and the gradients of images, weight and bias, as `y`, `dx`, `dweight`, `dbias`."""
    x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    y = function(x, norm)
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y)
    gradients = torch.autograd.grad((weights * y + y.square()).sum(), (x, norm.weight, norm.bias))
    return dict(zip(("y", "dx", "dweight", "dbias"), (y.detach(), *gradients), strict=True))


def instance_norm_by_pytorch(x, norm):
    return torch.nn.functional.max_pool2d(norm(x), 2).relu()


def test_instance_norm_agrees_with_float64():
    for shape in (*SHAPES[:-1], (40, 64, 32, 32), (2, 3, 64, 64)):
        for dtype, limit in ((torch.float32, 1e-3), (torch.bfloat16, 1e-2)):
            torch.manual_seed(0)
            x, norm = images(*shape, device=DEVICE).to(dtype), InstanceNorm(shape[1]).to(DEVICE)
            with torch.no_grad():
                norm.weight.copy_(torch.randn(shape[1]))
                norm.bias.copy_(torch.randn(shape[1]))
            found = instance_outcome(instance_norm_pool_relu, x, norm)
            assert found["y"].dtype == dtype
            again = instance_outcome(instance_norm_pool_relu, x, norm)
            wanted = instance_outcome(instance_norm_by_pytorch, x.double(), norm.double())
            for name, value in wanted.items():
                assert torch.equal(found[name], again[name]), name
                size = value.square().mean().sqrt().clamp(min=1e-2)
                distance = (found[name].double() - value).square().mean().sqrt() / size
                assert distance <= limit, f"{name} of {shape} in {dtype} lies {distance:.2e} away"


def test_a_bias_that_was_not_added_is_known_to_the_running_mean():
    x, norm = make((64, 32, 21, 21))
    bias = torch.randn(32, device=DEVICE)
    found = outcome(norm_pool_relu, x, norm, bias)
    wanted = truth(x, norm, bias)
    assert torch.allclose(found.running_mean.double(), wanted.running_mean, atol=1e-5)
    assert torch.allclose(found.running_var.double(), wanted.running_var, rtol=1e-4)


def test_equal_inputs_give_equal_bits():
    x, norm = make((768, 64, 28, 28))
    first = outcome(norm_pool_relu, x, norm)
    for _ in range(20):
        for one, other in zip(first, outcome(norm_pool_relu, x, norm), strict=True):
            assert torch.equal(one, other)


def test_nan_stays_nan():
    x, norm = make((64, 32, 14, 14))
    x[3, 5, 7, 7] = torch.nan
    found = outcome(norm_pool_relu, x, norm)
    assert found.y[:, 5].isnan().all()
    assert found.dx[:, 5].isnan().all()
    assert found.y[:, :5].isfinite().all()


def test_float64_and_evaluation_are_pytorchs_own():
    x, norm = make((8, 4, 6, 6))
    wanted = truth(x, norm)
    for one, other in zip(outcome(norm_pool_relu, x.double(), norm), wanted, strict=True):
        assert torch.equal(one, other)
    norm = norm.float().eval()
    assert torch.allclose(norm_pool_relu(x, norm), by_pytorch(x, norm), atol=1e-5)


def test_conv_4_on_a_gpu_is_that_on_a_cpu():
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    network = Conv4(1, 28)
    x = torch.rand(32, 1, 28, 28)
    wanted = network(x)
    wanted.square().sum().backward()
    gradients = {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}
    network.zero_grad()
    network.to(DEVICE)
    found = network(x.to(DEVICE))
    found.square().sum().backward()
    assert torch.allclose(found.cpu(), wanted, atol=1e-4)
    for name, gradient in gradients.items():
        came = dict(network.named_parameters())[name].grad.cpu()
        distance = (came - gradient).norm() / gradient.norm()
        assert distance < 1e-2, f"{name} lies {distance:.2e} away"


def test_biases_and_their_gradients_agree_with_float64():
    for dtype, limit in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
        torch.manual_seed(0)
        x, skip, dy = (torch.randn(200, 32, 33, 31, device=DEVICE, dtype=dtype) for _ in range(3))
        bias = torch.randn(32, device=DEVICE)
        for function, inputs in ((bias_relu, (x, bias)), (add_bias, (x, skip, bias))):
            found, again, wanted = (
                gradients_of(function, [each.to(kind or each.dtype) for each in inputs], dy.to(kind or dtype))
                for kind in (None, None, torch.float64)
            )
            for came, same, exact in zip(found, again, wanted, strict=True):
                assert torch.equal(came, same)
                assert (came.double() - exact).norm() <= limit * exact.norm()


def gradients_of(function, inputs, dy):
    """What a function gives and the gradients of its inputs, channels-last."""
    inputs = [
        (each.contiguous(memory_format=torch.channels_last) if each.dim() == 4 else each).requires_grad_()
        for each in inputs
    ]
    y = function(*inputs)
    return [y.detach(), *torch.autograd.grad(y, inputs, dy)]


def test_frames_become_the_numbers_of_pytorch():
    frames = torch.arange(3 * 64 * 64 * 3, device=DEVICE).remainder(256).to(torch.uint8).reshape(3, 64, 64, 3)
    for dtype, limit in ((torch.float32, 2e-7), (torch.bfloat16, 0.0)):
        images = to_images(frames, dtype)
        assert images.is_contiguous(memory_format=torch.channels_last)
        assert torch.allclose(images[:, :3], frames.permute(0, 3, 1, 2).to(dtype) / 255, rtol=limit, atol=0)
        assert not images[:, 3:].any()


def by_pytorch_alone(network, frames):
    """IMPALA's features without a kernel of ours."""
    x = frames
    for stage in network.stages:
        x = F.max_pool2d(stage.conv(x), 3, stride=2, padding=1)
        for block in stage.blocks:
            x = x + block.conv2(block.conv1(x.relu()).relu())
    return network.linear(x.relu().flatten(1)).relu()


def test_impala_and_its_gradients_are_those_of_pytorch():
    torch.manual_seed(0)
    set_tf32(False)
    # A unit near zero may be on its other side, and has no gradient then; in bfloat16 one in some hundreds is.
    network, frames = Impala().to(DEVICE), torch.rand(64, 3, 64, 64, device=DEVICE)
    for dtype, limit in ((torch.float32, 1e-2), (torch.bfloat16, 0.3)):
        found = []
        for function in (network, functools.partial(by_pytorch_alone, network)):
            with torch.autocast("cuda", dtype, enabled=dtype == torch.bfloat16):
                features = function(frames)
            gradients = torch.autograd.grad(features.float().square().sum(), list(network.parameters()))
            found.append([part.double() for part in (features, *gradients)])
        for came, expected in zip(*found, strict=True):
            distance = (came - expected).square().mean().sqrt() / expected.square().mean().sqrt()
            assert distance < limit, f"{dtype} {tuple(came.shape)}: {distance:.2e}"


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_") and (not sys.argv[1:] or name in sys.argv[1:]):
            test()
            sys.stdout.write(f"pass {name}\n")
