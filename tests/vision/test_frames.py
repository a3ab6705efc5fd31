"""Frames to images, by PyTorch and by the kernel (in Triton's interpreter)."""

import pytest
import torch

from srwm.vision.frames import fused_to_images, to_images


def frames_of(size):
    return torch.randint(256, size, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("size", [(2, 8, 8, 3), (3, 5, 7, 1), (1, 4, 4, 9)])
def test_the_kernel_computes_what_pytorch_computes(size):
    frames = frames_of(size)
    found, expected = fused_to_images(frames, torch.float32), to_images(frames, torch.float32)
    # It multiplies by 1 / 255, as PyTorch does on a GPU; on a CPU PyTorch divides.
    torch.testing.assert_close(found[:, : size[-1]], expected, rtol=2e-7, atol=0)


def test_further_channels_are_zeros_up_to_a_multiple_of_eight():
    images = fused_to_images(frames_of((2, 8, 8, 3)), torch.float32)
    assert images.shape[1] == 8
    assert not images[:, 3:].any()


def test_images_lie_channels_last():
    for function in (to_images, fused_to_images):
        assert function(frames_of((2, 8, 8, 3)), torch.float32).is_contiguous(memory_format=torch.channels_last)


def test_every_byte_has_its_number():
    frames = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16, 1)
    images = fused_to_images(frames, torch.float32)[0, 0].flatten()
    torch.testing.assert_close(images, torch.arange(256) / 255, rtol=2e-7, atol=0)
