"""The parameter counts of the paper's models; the vision networks count by arithmetic until they exist here."""

from itertools import pairwise

import pytest

from srwm.nn import SequenceModel


def conv(c_in, c_out, kernel=3, *, bias):
    return c_in * c_out * kernel**2 + (c_out if bias else 0)


def batch_norm(channels):
    return 2 * channels


def linear(d_in, d_out):
    return d_in * d_out + d_out


def conv_4(c_in, channels):
    sizes = [c_in, channels, channels, channels, channels]
    return sum(conv(a, b, bias=True) + batch_norm(b) for a, b in pairwise(sizes))


def res_12(*channels):
    count = 0
    for a, b in pairwise((3, *channels)):
        convs = conv(a, b, bias=False) + 2 * conv(b, b, bias=False) + conv(a, b, 1, bias=False)
        count += convs + 4 * batch_norm(b)
    return count


def impala():
    stages = [(3, 16), (16, 32), (32, 32)]
    return sum(conv(a, b, bias=True) + 4 * conv(b, b, bias=True) for a, b in stages) + linear(2048, 256)


def count(model):
    return sum(p.numel() for p in model.parameters())


UNUSED_NORM = {"norm": "unused"}


@pytest.mark.parametrize(
    ("memory", "options", "expected"),
    [
        ("none", {}, 626_272),
        ("lstm", {"hidden_size": 256, "num_layers": 1}, 1_153_616),
        ("fake_srwm", {"memory_options": UNUSED_NORM}, 958_544),
        ("srwm", {"memory_options": UNUSED_NORM}, 967_760),
        ("srwm", {"memory_options": {**UNUSED_NORM, "reset_every": 50}}, 967_760),
        ("deltanet", {}, 1_054_800),
        ("deltanet", {"num_heads": 4}, 1_053_776),
        ("sr_deltanet", {"memory_options": UNUSED_NORM}, 976_208),
    ],
)
def test_reinforcement_learning(memory, options, expected):
    sizes = {"hidden_size": 128, "num_layers": 2, "num_heads": 8, "ff_size": 512, **options}
    core = SequenceModel(256 + 1, memory=memory, **sizes)
    heads = linear(core.output_size, 15) + linear(core.output_size, 1)
    assert impala() + count(core) + heads == expected


MINI_IMAGENET = (conv_4(3, 32), 800)
OMNIGLOT = (conv_4(1, 64), 64)
FC100 = (conv_4(3, 32), 128)
FC100_RES_12 = (res_12(64, 96, 128, 256), 256)


@pytest.mark.parametrize(
    ("vision", "memory", "num_layers", "ff_size", "expected"),
    [
        (MINI_IMAGENET, "srwm", 3, 2048, 3_628_773),
        (MINI_IMAGENET, "srwm", 3, 1024, 2_052_837),
        (MINI_IMAGENET, "deltanet", 4, 2048, 5_509_093),
        (OMNIGLOT, "srwm", 2, 1024, 1_342_021),
        (OMNIGLOT, "deltanet", 2, 1024, 1_716_805),
        (FC100, "srwm", 3, 1024, 1_880_805),
        (FC100, "deltanet", 3, 2048, 4_018_917),
        (FC100_RES_12, "srwm", 3, 1024, 4_117_125),
        (MINI_IMAGENET, "srwm", 3, 256, 870_885),
        (MINI_IMAGENET, "deltanet", 3, 256, 1_433_061),
    ],
)
def test_few_shot_learning(vision, memory, num_layers, ff_size, expected):
    parameters, features = vision
    model = SequenceModel(features + 5, 5, memory=memory, num_layers=num_layers, ff_size=ff_size)
    assert parameters + count(model) == expected


@pytest.mark.parametrize(
    ("vision", "hidden_size", "num_layers", "expected"),
    [(MINI_IMAGENET, 1024, 1, 7_533_797), (OMNIGLOT, 512, 2, 3_409_733)],
)
def test_few_shot_learning_with_an_lstm(vision, hidden_size, num_layers, expected):
    parameters, features = vision
    model = SequenceModel(features + 5, 5, memory="lstm", hidden_size=hidden_size, num_layers=num_layers)
    assert parameters + count(model) == expected


def test_the_default_model_is_the_papers_for_omniglot():
    assert OMNIGLOT[0] + count(SequenceModel(64 + 5, 5)) == 1_342_021


@pytest.mark.parametrize(("channels", "expected"), [((64, 96, 128, 256), 2_232_448), ((64, 128, 256, 512), 7_996_800)])
def test_the_arithmetic_of_res_12_is_right(channels, expected):
    assert res_12(*channels) == expected
