import pytest
import torch
from torch.nn import functional as F

from srwm.vision import Impala


def test_impala_has_the_parameters_of_the_paper():
    # 626,272 in the paper's feed-forward agent, less its heads for 15 actions and a value from 257 numbers.
    assert sum(p.numel() for p in Impala().parameters()) == 626_272 - 258 * 16


def test_impala_is_that_of_the_equations():
    network = Impala(channels=(4, 6), feature_size=5, frame_size=9)
    frames = torch.rand(3, 3, 9, 9)
    x = frames
    for stage in network.stages:
        x = F.max_pool2d(stage.conv(x), 3, stride=2, padding=1)
        for block in stage.blocks:
            x = x + block.conv2(block.conv1(x.relu()).relu())
    wanted = network.linear(x.relu().flatten(1)).relu()
    torch.testing.assert_close(network(frames), wanted)


def test_impala_without_stages_is_refused():
    with pytest.raises(ValueError, match="at least one stage"):
        Impala(channels=())
