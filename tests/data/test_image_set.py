import pytest
import torch

from srwm.data import ImageSet
from srwm.errors import InputError


def make(**changes):
    fields = {
        "name": "pets/train",
        "images": torch.arange(5, dtype=torch.uint8)[:, None, None, None].expand(5, 1, 2, 2),
        "starts": torch.tensor([0, 3]),
        "counts": torch.tensor([3, 2]),
        "class_names": ("cat", "dog"),
    }
    return ImageSet(**{**fields, **changes})


def test_classes_are_counted_and_moved_together():
    moved = make().to("cpu")
    assert moved.num_classes == 2
    assert moved.class_names == ("cat", "dog")
    assert moved.images[moved.starts[1] :].unique().tolist() == [3, 4]


def test_of_counts_says_where_each_class_begins():
    images = torch.zeros(6, 1, 2, 2, dtype=torch.uint8)
    found = ImageSet.of_counts("x", images, [1, 3, 2], ["a", "b", "c"])
    assert found.starts.tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"class_names": ("cat",)}, "1 class names"),
        ({"starts": torch.tensor([0, 2])}, "one after the other"),
        ({"counts": torch.tensor([3, 1])}, "5 images"),
        ({"counts": torch.tensor([5, 0]), "starts": torch.tensor([0, 5])}, "'dog' of pets/train has no image"),
        ({"images": torch.zeros(5, 2, 2, dtype=torch.uint8)}, r"\[5, 2, 2\]"),
        ({"images": torch.zeros(5, 1, 2, 2)}, "float32"),
    ],
)
@pytest.mark.usefixtures("as_installed")
def test_what_does_not_fit_together_is_refused(changes, problem):
    with pytest.raises(InputError, match=problem):
        make(**changes)
