import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from srwm.data._strokes_program import KINDS, compose
from srwm.data._strokes_random import child_keys, first_key, normal, uniform
from srwm.data.strokes import STROKES_CLASSES, class_keys, draw_strokes
from srwm.data.strokes_pen import draw_paths
from srwm.errors import InputError

SPLITS = ("train", "validation", "test")
DIGEST = "d915432541215f39b22f7cf592f3e737b6be13a29370c9410b5cd921271d53b0"
"""Of the first fifty training classes, four drawings each; a change of Strokes changes every published figure on it."""


@pytest.fixture(scope="module")
def drawn():
    """Forty classes of ten drawings, [40, 10, 28, 28]."""
    return draw_strokes("train", classes=40, per_class=10).images.reshape(40, 10, 28, 28)


def digest(image_set):
    return hashlib.sha256(image_set.images.numpy().tobytes()).hexdigest()


@pytest.mark.parametrize(("split", "classes"), [("train", 1000), ("validation", 150), ("test", 400)])
def test_a_split_has_its_number_of_classes(split, classes):
    whole = draw_strokes(split, image_size=8, per_class=2)
    assert whole.name == f"strokes/{split}"
    assert whole.images.shape == (classes * 2, 1, 8, 8)
    assert whole.starts.tolist() == list(range(0, classes * 2, 2))
    assert len(set(whole.class_names)) == classes


def test_a_class_has_twenty_drawings_of_28_pixels():
    few = draw_strokes("train", classes=3)
    assert few.images.shape == (60, 1, 28, 28)
    assert few.counts.tolist() == [20, 20, 20]


def test_equal_arguments_give_equal_bytes_in_another_process():
    code = (
        "import hashlib; from srwm.data.strokes import draw_strokes; "
        "images = draw_strokes('test', seed=3, classes=7).images; "
        "print(hashlib.sha256(images.numpy().tobytes()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest(draw_strokes("test", seed=3, classes=7))


def test_the_bytes_are_the_same_on_every_machine():
    assert digest(draw_strokes("train", classes=50, per_class=4)) == DIGEST


def test_a_drawing_does_not_depend_on_how_many_are_drawn():
    few = draw_strokes("train", classes=5, per_class=3).images.reshape(5, 3, 28, 28)
    # More than are drawn together in one piece.
    many = draw_strokes("train", classes=60, per_class=15).images.reshape(60, 15, 28, 28)
    assert torch.equal(many[:5, :3], few)


def test_no_key_and_no_program_is_in_two_splits():
    keys = [class_keys(split, 0, STROKES_CLASSES[split]) for split in SPLITS]
    assert len(np.unique(np.concatenate(keys))) == sum(STROKES_CLASSES.values())
    seen = set()
    for split_keys in keys:
        programs = compose(split_keys)
        numbers = np.concatenate([programs.heading, *np.moveaxis(programs.length, 2, 0)], axis=1)
        # Not even nearly: to six digits of every heading and length.
        seen.update(map(tuple, np.round(numbers, 6).tolist()))
    assert len(seen) == sum(STROKES_CLASSES.values())


def test_first_drawings_of_all_classes_of_all_splits_differ():
    images = torch.cat([draw_strokes(split, classes=150, per_class=2).images for split in SPLITS]).flatten(1)
    assert len(images.unique(dim=0)) == 900


def test_another_seed_draws_other_characters(drawn):
    other = draw_strokes("train", seed=1, classes=40, per_class=10).images.reshape(40, 10, 28, 28)
    assert not (other == drawn).all(dim=(2, 3)).any()


def test_programs_use_every_kind_and_one_to_four_strokes():
    programs = compose(class_keys("train", 0, 1000))
    assert set(programs.kind[programs.drawn()].tolist()) == set(range(len(KINDS)))
    assert set(programs.count.tolist()) == {1, 2, 3, 4}
    lone = programs.kind[programs.count == 1, 0]
    assert all(list(KINDS.values())[kind].stands_alone for kind in lone)


@pytest.mark.parametrize("image_size", [8, 28, 105])
def test_every_drawing_has_ink_and_keeps_a_dark_border(image_size):
    images = draw_strokes("validation", classes=60, per_class=5, image_size=image_size).images[:, 0]
    ink = images.float().mean(dim=(1, 2)) / 255
    assert ink.min() > 0.015
    assert ink.max() < 0.3
    assert images.amax(dim=(1, 2)).min() > 100
    border = torch.cat([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], dim=1)
    assert border.max() <= 2


def test_drawings_of_a_class_differ_but_less_than_those_of_others(drawn):
    flat = drawn.flatten(2).float()
    distance = torch.cdist(flat.flatten(0, 1), flat.flatten(0, 1)).reshape(40, 10, 40, 10)
    same = torch.eye(40, dtype=torch.bool)[:, None, :, None].expand_as(distance)
    within = distance[same].reshape(40, 10, 10)[:, ~torch.eye(10, dtype=torch.bool)]
    assert within.min() > 300
    assert within.mean() < 0.92 * distance[~same].mean()


def test_the_nearest_neighbour_by_pixels_is_far_from_chance_and_far_from_perfect():
    images = draw_strokes("test", classes=100, per_class=2).images.reshape(20, 5, 2, -1).float()
    shown, asked = images.unbind(dim=2)
    right = torch.cdist(asked, shown).argmin(dim=2) == torch.arange(5)
    assert 0.3 < right.float().mean() < 0.75


def test_edges_are_smooth(drawn):
    levels = drawn[drawn > 0]
    assert len(levels.unique()) > 200
    assert (levels == 255).float().mean() > 0.2


def test_a_straight_path_inks_its_pixels_by_how_far_they_lie_within():
    # Along the middle of row 4, with a pen of 1.25 pixels: full to 0.75, none from 1.75 pixels on.
    points = np.array([[[[0.25, 4.5 / 9], [0.75, 4.5 / 9]]]], dtype=np.float32)
    image = draw_paths(points, np.full((1, 1), 1.25 / 9, dtype=np.float32), np.ones((1, 1), dtype=bool), 9)[0]
    assert image[:, 4].tolist() == [0, 0, 0, 191, 255, 191, 0, 0, 0]
    assert image[4, 0] == 0


def test_paths_that_are_not_drawn_leave_no_ink():
    points = np.full((2, 1, 3, 2), 0.5, dtype=np.float32)
    images = draw_paths(points, np.full((2, 1), 0.1, dtype=np.float32), np.array([[True], [False]]), 9)
    assert images[0].max() == 255
    assert images[1].max() == 0
    assert draw_paths(points, np.full((2, 1), 0.1, dtype=np.float32), np.zeros((2, 1), dtype=bool), 9).max() == 0


def test_random_numbers_have_their_mean_and_deviation_and_do_not_repeat():
    keys = child_keys(first_key(7), np.arange(1000, dtype=np.uint64))
    even, bell = uniform(keys, 50), normal(keys, 50)
    assert len(np.unique(even)) == 50_000
    assert abs(even.mean() - 0.5) < 0.005
    assert abs(even.std() - 12**-0.5) < 0.005
    assert abs(bell.mean()) < 0.02
    assert abs(bell.std() - 1) < 0.02
    # Neighbouring keys and numbers have nothing to do with each other.
    assert abs(np.corrcoef(bell[:-1].ravel(), bell[1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(bell[:, :-1].ravel(), bell[:, 1:].ravel())[0, 1]) < 0.02


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "dev"}, "split='dev'; expected one of 'train', 'validation', 'test'"),
        ({"seed": -1}, "seed=-1; Strokes wants a number from 0 to"),
        ({"seed": 1 << 64}, "seed=18446744073709551616; Strokes wants"),
        ({"image_size": 7}, "image_size=7; Strokes wants a number from 8 to 1024"),
        ({"image_size": 1025}, "image_size=1025; "),
        ({"classes": 0}, "classes=0; Strokes wants a number from 1 to"),
        ({"per_class": 0}, "per_class=0; Strokes wants a number from 1 to"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(arguments, message):
    with pytest.raises(InputError) as caught:
        draw_strokes(**{"split": "train", "classes": 2, **arguments})
    assert str(caught.value).startswith(message)
