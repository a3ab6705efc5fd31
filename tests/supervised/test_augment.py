"""Random changes to training images."""

import math

import pytest
import torch

from srwm.supervised import augment
from srwm.supervised.augment import episode_keys, horizontal_flip, jitter, thicken


def images(episodes=2, channels=1):
    """The same smooth picture everywhere, without any symmetry: four an episode."""
    x = torch.linspace(0, 3, 20)
    return ((x[:, None] * 1.3).sin() * x.cos() + 0.3 * x).repeat(episodes, 4, channels, 1, 1)


def changed(pictures=None, *, each_image=0.0, each_episode=0.0, seed=7, rng_stream=3, step=3, first=0):
    pictures = images() if pictures is None else pictures
    keys = episode_keys(len(pictures), seed=seed, rng_stream=rng_stream, step=torch.tensor(step), first=first)
    return jitter(pictures, keys, each_image=each_image, each_episode=each_episode)


def mirrored(pictures, *, seed, step, first=0):
    return horizontal_flip(
        pictures, episode_keys(len(pictures), seed=seed, rng_stream=1, step=torch.tensor(step), first=first)
    )


KINDS = pytest.mark.parametrize("kind", ["each_image", "each_episode"])


def test_strength_zero_changes_nothing():
    assert torch.allclose(changed(), images(), atol=1e-5)


@KINDS
def test_it_is_a_pure_function_of_its_arguments(kind):
    first = changed(**{kind: 1.0})
    torch.rand(5)
    assert torch.equal(changed(**{kind: 1.0}), first)
    for other in ({"seed": 8}, {"rng_stream": 4}, {"step": 4}):
        assert not torch.allclose(changed(**{kind: 1.0}, **other), first, atol=1e-3)


@KINDS
def test_the_parts_of_a_batch_are_changed_as_in_the_whole(kind):
    whole = changed(**{kind: 1.0})
    parts = [changed(images(1), first=row, **{kind: 1.0}) for row in range(2)]
    assert torch.allclose(torch.cat(parts), whole, atol=1e-6)


def test_each_image_is_changed_by_itself():
    found = changed(each_image=1.0).flatten(0, 1)
    for i in range(len(found)):
        for j in range(i):
            assert not torch.allclose(found[i], found[j], atol=1e-3)


def test_the_images_of_an_episode_are_changed_alike_and_those_of_another_are_not():
    """Also those of different classes: they must not be told apart by their angle."""
    found = changed(each_episode=1.0)
    assert torch.allclose(found, found[:, :1].expand_as(found), atol=1e-5)
    assert not torch.allclose(found[0], found[1], atol=1e-3)


def test_the_channels_of_an_image_are_changed_alike():
    found = changed(images(channels=3), each_image=1.0, each_episode=1.0)
    assert torch.equal(found[:, :, 0], found[:, :, 2])
    assert found.shape == (2, 4, 3, 20, 20)


def test_a_stronger_change_goes_further():
    away = [(changed(each_image=strength) - images()).abs().mean() for strength in (0.1, 0.5, 1.0)]
    assert 0 < away[0] < away[1] < away[2]


def dots(place):
    """500 black images, each in an episode of its own, with a white dot."""
    black = torch.zeros(500, 1, 1, 41, 41)
    row, column = place
    black[..., row - 1 : row + 2, column - 1 : column + 2] = 1
    return black


def centres(found):
    """Where the white of each image is, from the middle: [rows, columns] of 500 images."""
    at = torch.arange(41.0) - 20
    flat = found[:, 0, 0]
    mass = flat.sum(dim=(1, 2))
    return torch.stack([(flat.sum(dim=2) @ at) / mass, (flat.sum(dim=1) @ at) / mass])


def test_an_image_moves_by_a_tenth_of_half_of_it_at_most_and_all_ways():
    away = centres(changed(dots((20, 20)), each_image=1.0))
    # What is drawn is where pixels come from, so the white of a smaller image moves further.
    assert away.abs().max() < 0.1 * 20.5 / 0.75
    assert away.max() > 1.5
    assert away.min() < -1.5
    assert away.mean(dim=1).abs().max() < 0.2


def test_an_episode_is_not_moved():
    assert centres(changed(dots((20, 20)), each_episode=1.0)).abs().max() < 0.1


@pytest.mark.parametrize(("kind", "degrees"), [("each_image", 15), ("each_episode", 45)])
def test_turns_go_as_far_as_they_should(kind, degrees):
    middle, above = (centres(changed(dots(place), **{kind: 1.0})) for place in ((20, 20), (10, 20)))
    row, column = above - middle
    angle = torch.atan2(column, -row)
    largest = math.degrees(angle.abs().max())
    assert 0.7 * degrees < largest < 1.7 * degrees, "a shear adds to the turn"
    assert angle.mean().abs() < math.radians(degrees) / 10


def is_mirrored(**strengths):
    """Whether a dot on the right of the way up has come to stand on its left."""
    middle, above, beside = (centres(changed(dots(place), **strengths)) for place in ((20, 20), (8, 20), (20, 28)))
    up, right = above - middle, beside - middle
    return up[0] * right[1] - up[1] * right[0] > 0


def test_half_of_the_episodes_are_mirrored_and_no_single_image():
    mirrored = is_mirrored(each_episode=1.0).float().mean()
    assert abs(mirrored - 0.5) < 4 * 0.5 / 500**0.5
    assert not is_mirrored(each_image=1.0).any()


def test_nothing_is_drawn_in_from_outside():
    ones = torch.ones(1, 50, 1, 20, 20)
    found = changed(ones, each_image=1.0)
    assert found.min() == 0
    assert found.max() <= 1 + 1e-5
    assert found[..., 8:12, 8:12].min() > 0.99


def test_half_of_the_images_are_mirrored_each_by_itself():
    pictures = torch.arange(8.0).reshape(1, 1, 1, 2, 4).expand(40, 25, 3, 2, 4)
    seen = mirrored(pictures, seed=0, step=3)
    is_mirrored = (seen == pictures.flip(-1)).flatten(2).all(dim=-1)
    is_same = (seen == pictures).flatten(2).all(dim=-1)
    assert torch.equal(is_mirrored, ~is_same)
    assert 400 < is_mirrored.sum() < 600
    assert not torch.equal(is_mirrored[0], is_mirrored[1])
    later = mirrored(pictures, seed=0, step=4)
    assert not torch.equal(seen, later)


def test_a_part_of_a_batch_is_mirrored_as_in_the_whole():
    pictures = torch.rand(6, 5, 1, 4, 4)
    whole = mirrored(pictures, seed=2, step=7)
    part = mirrored(pictures[4:], seed=2, step=7, first=4)
    assert torch.equal(part, whole[4:])


def thickened(pictures, most, step=0, first=0):
    keys = episode_keys(len(pictures), seed=0, rng_stream=1, step=torch.tensor(step), first=first)
    return thicken(pictures, keys, most)


def test_strokes_become_thicker_by_up_to_so_many_pixels_each_image_by_itself():
    line = torch.zeros(8, 30, 1, 11, 11)
    line[..., 5, :] = 1.0
    seen = thickened(line, 2.0)
    assert torch.equal(seen[..., 5, :], line[..., 5, :])
    # The ink of a column is the width: 1 and up to two pixels on either side.
    width = seen[..., 0].sum(dim=-1).flatten()
    assert 1.0 <= float(width.min()) < 1.2
    assert 4.8 < float(width.max()) <= 5.0
    assert 2.8 < float(width.mean()) < 3.2
    assert torch.equal(seen, seen.flip(-2))
    assert not torch.equal(seen[0, 0], seen[0, 1])
    assert torch.equal(thickened(line, 0.0), line)


def test_a_part_of_a_batch_is_thickened_as_in_the_whole_and_other_steps_otherwise():
    pictures = torch.rand(6, 5, 1, 8, 8)
    whole = thickened(pictures, 1.5, step=7)
    assert torch.equal(thickened(pictures[4:], 1.5, step=7, first=4), whole[4:])
    assert not torch.equal(thickened(pictures, 1.5, step=8), whole)


def test_each_purpose_of_each_episode_has_keys_of_its_own(monkeypatch):
    """What is drawn from one key is the same numbers again: a turn would follow from whether it is mirrored."""
    drawn = []
    whole = augment.random_bits

    def noted(key, shape):
        drawn.append(key.flatten())
        return whole(key, shape)

    monkeypatch.setattr(augment, "random_bits", noted)
    for step in range(20):
        keys = episode_keys(8, seed=0, rng_stream=1, step=torch.tensor(step))
        pictures = images(8)
        horizontal_flip(jitter(thicken(pictures, keys, 1.0), keys, each_image=1.0, each_episode=1.0), keys)
    keys = torch.cat(drawn)
    # The change of the episode and whether it is mirrored; the changes of the images, which of these are mirrored, and
    # how thick they become.
    assert len(keys) == 20 * 8 * 5
    assert len(keys.unique()) == len(keys)
