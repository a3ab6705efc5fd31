"""Made-up characters for those who would rather watch than draw."""

from jaxtyping import UInt8
from numpy import ndarray

from srwm.data.strokes import draw_strokes

FIRST_SEED = 7919
"""Other alphabets than those that models are trained on, which have seed 0."""

Pair = tuple[UInt8[ndarray, "c h w"], UInt8[ndarray, "c h w"]]


def sample_images(number: int, ways: int, shape: tuple[int, int, int]) -> list[Pair]:
    """Draw two images each of some characters of Strokes, by different hands: one to teach, one to ask about.

    Args:
        number: which characters; every number gives others.
        ways: how many.
        shape: channels, height and width (the same) of the images.
    """
    channels, size, _ = shape
    drawn = draw_strokes("test", seed=FIRST_SEED + number, image_size=size, classes=ways, per_class=2)
    images = drawn.images.repeat(1, channels, 1, 1).numpy().reshape(ways, 2, channels, size, size)
    return [(one, other) for one, other in images]
