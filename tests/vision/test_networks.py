"""Conv-4 and Res-12."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from srwm.vision import Conv4, Res12
from srwm.vision.conv4 import channels_last


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("in_channels", "image_size", "channels", "features", "parameters"),
    [(1, 28, 64, 64, 111_936), (3, 84, 32, 800, 28_896), (3, 32, 32, 128, 28_896), (1, 16, 8, 8, 1_896)],
)
def test_the_sizes_of_conv_4(in_channels, image_size, channels, features, parameters):
    network = Conv4(in_channels, image_size, channels=channels)
    assert count(network) == parameters
    assert network.feature_size == features
    assert network(torch.rand(2, in_channels, image_size, image_size)).shape == (2, features)


@pytest.mark.parametrize(("features", "parameters"), [(256, 2_232_448), (512, 7_996_800)])
def test_the_sizes_of_res_12(features, parameters):
    network = Res12(3, features=features)
    assert count(network) == parameters
    assert network.feature_size == features
    assert network.eval()(torch.rand(1, 3, 20, 20)).shape == (1, features)


def conv_4_as_the_paper_writes_it(network, x):
    """Convolution with bias, batch norm, pool, ReLU."""
    for block in network.blocks:
        norm = block.norm
        y = F.conv2d(x, block.conv.weight, block.conv.bias, padding=1)
        y = F.batch_norm(
            y, norm.running_mean.clone(), norm.running_var.clone(), norm.weight, norm.bias, norm.training, 0.1, 1e-5
        )
        x = F.max_pool2d(y, 2).relu()
    return x.flatten(1)


@pytest.mark.parametrize("training", [True, False])
def test_conv_4_equals_the_papers_though_it_never_adds_its_biases(training):
    network = Conv4(3, 21, channels=5).double()
    for block in network.blocks:
        nn.init.normal_(block.conv.bias)
    network(torch.rand(9, 3, 21, 21).double())
    network.train(training)
    x = torch.rand(4, 3, 21, 21).double()
    wanted = conv_4_as_the_paper_writes_it(network, x)
    assert torch.allclose(network(x), wanted, atol=1e-10)


def res_12_as_the_paper_writes_it(network, x):
    """Its formulas with the network's weights, in evaluation."""

    def normed(norm, y):
        return F.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias)

    for block in network.blocks:
        y = x
        for i, (conv, norm) in enumerate(zip(block.convs, block.norms, strict=True)):
            y = normed(norm, F.conv2d(y, conv.weight, padding=1))
            y = F.leaky_relu(y, 0.1) if i < 2 else y
        y = y + normed(block.shortcut_norm, F.conv2d(x, block.shortcut.weight))
        x = F.max_pool2d(F.leaky_relu(y, 0.1), 2)
    return x.mean(dim=(2, 3))


def test_res_12_equals_the_papers():
    network = Res12(1).eval()
    x = torch.rand(2, 1, 17, 17)
    assert torch.allclose(network(x), res_12_as_the_paper_writes_it(network, x), atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_images_lie_channels_last_within_the_networks(channels):
    images = channels_last(torch.rand(2, channels, 16, 16))
    assert images.is_contiguous(memory_format=torch.channels_last)
    assert images.stride() == (channels * 256, 1, channels * 16, channels)
    seen = []
    network = Conv4(channels, 16, channels=8).eval()  # in training the kernels are given the norm, which is not called
    for block in network.blocks:
        block.norm.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0].stride()))
    network(torch.rand(2, channels, 16, 16))
    assert [stride[1] for stride in seen] == [1, 1, 1, 1]


def test_channels_last_changes_no_value():
    for channels in (1, 3):
        images = torch.rand(2, channels, 5, 7)
        assert torch.equal(channels_last(images), images)
        assert torch.equal(channels_last(images[:, :, ::2, 1:]), images[:, :, ::2, 1:])


@pytest.mark.parametrize("image_size", [1, 15])
def test_conv_4_refuses_images_that_are_too_small(image_size):
    with pytest.raises(ValueError, match=f"image_size={image_size}; expected at least 16"):
        Conv4(1, image_size)


@pytest.mark.parametrize("size", [(15, 32), (32, 15)])
def test_res_12_refuses_images_that_are_too_small(size):
    with pytest.raises(ValueError, match=r"images are .* pixels; expected at least 16 x 16"):
        Res12(1)(torch.rand(1, 1, *size))


def test_res_12_refuses_an_unknown_size():
    with pytest.raises(ValueError, match="features=300; expected one of 256, 512"):
        Res12(3, features=300)


def test_conv_4_drops_single_features_before_the_relu_and_only_in_training():
    network = Conv4(1, 16, channels=32, dropout=0.5)
    x = torch.rand(4, 1, 16, 16)
    first, second = network(x), network(x)
    assert not torch.equal(first, second)
    network.eval()
    assert torch.equal(network(x), network(x))


class Dropped:
    """Watches the dropouts of a Res-12: how many act, and whether whole channels go."""

    def __init__(self, variant):
        self.calls, self.whole_channels = 0, []
        network = Res12(1, dropout=0.5, dropout_variant=variant)
        for module in network.modules():
            if isinstance(module, nn.Dropout | nn.Dropout2d) and module is not network.input_dropout:
                module.register_forward_hook(self._look)
        network(torch.rand(2, 1, 32, 32))

    def _look(self, module, arguments, output):
        self.calls += 1
        (x,) = arguments
        if x[0, 0].numel() > 1:
            gone = ((output == 0) & (x != 0)).flatten(2)
            self.whole_channels.append(torch.equal(gone.any(dim=2), (gone | (x == 0).flatten(2)).all(dim=2)))


@pytest.mark.parametrize(
    ("variant", "calls", "whole_channels"),
    [("base", 4, False), ("inblock", 12, False), ("2d", 4, True), ("2d_inblock", 12, True)],
)
def test_the_dropout_variants_of_res_12(variant, calls, whole_channels):
    dropped = Dropped(variant)
    assert dropped.calls == calls
    assert set(dropped.whole_channels) == {whole_channels}


def test_res_12_can_drop_pixels_of_its_input():
    network = Res12(1, input_dropout=0.5)
    seen = []
    network.blocks[0].register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    network(torch.ones(1, 1, 16, 16))
    assert set(seen[0].unique().tolist()) == {0.0, 2.0}
