"""Images of several sources in one tensor, at one scale."""

from dataclasses import replace

import pytest
import torch

from fewshot.tiny import image_set, write_images
from srwm.errors import InputError
from srwm.sequential import Bank, load_bank
from srwm.sequential.bank import set_names, statistics

from .tiny import bank, config


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return [write_images(tmp_path_factory.mktemp(name) / name, per_class=6) for name in ("one", "two")]


def stream(*sources, **values):
    return config(stream={"sources": sources, **values}).stream


def test_a_bank_holds_the_images_of_all_sets_one_after_the_other():
    sets = [image_set(4, 6), image_set(5, 3, seed=1)]
    images = Bank.of_sets(["a", "b"], sets)
    assert torch.equal(images.images, torch.cat([one.images for one in sets]))
    assert images.firsts == (0, 24)
    assert images.segments == (0, 1)
    assert images.set_of_image().tolist() == [0] * 24 + [1] * 15
    assert [one.counts.tolist() for one in images.classes] == [[6] * 4, [3] * 5]
    assert all(one.images.numel() == 0 for one in images.classes)


def test_images_of_different_shapes_get_a_sentence():
    small = image_set()
    with pytest.raises(InputError, match="the images of a, b differ in shape"):
        Bank.of_sets(["a", "b"], [small, replace(small, images=small.images[..., :8])])


def test_folders_are_brought_to_one_size_and_one_number_of_channels(folders):
    images = load_bank(stream(*(f"folder:{path}" for path in folders), image_size=20, channels=3), "train")
    assert images.names == ("one", "two")
    assert images.images.shape[1:] == (3, 20, 20)


def test_a_source_listed_twice_is_loaded_once(folders):
    word = f"folder:{folders[0]}"
    images = load_bank(stream(word, word), "train")
    assert (images.names, images.segments, len(images.images)) == (("one",), (0, 0), 30)


def test_inverted_images_are_negatives(folders):
    word = f"folder:{folders[0]}"
    images = load_bank(stream(word, f"{word}+inverted"), "train")
    assert images.names == ("one", "one+inverted")
    assert torch.equal(images.images[:30], 255 - images.images[30:])


def test_strokes_need_no_data():
    images = load_bank(stream("strokes", "strokes+inverted"), "validation")
    assert images.names == ("strokes", "strokes+inverted")
    assert images.images.shape == (6000, 1, 16, 16)


def test_folders_of_the_same_name_can_be_told_apart():
    assert set_names(stream("folder:x/cats", "folder:y/cats", "omniglot")) == ("cats", "cats-1", "omniglot")


def test_a_split_without_enough_images_gets_a_sentence(folders):
    with pytest.raises(InputError, match=r"has 6 images; 6 to learn from and 1 to ask for need 7"):
        load_bank(stream(f"folder:{folders[0]}", per_class=6), "train")
    with pytest.raises(InputError, match="has 4 classes; 5-way"):
        load_bank(stream(f"folder:{folders[0]}", ways=5, per_class=3), "validation")


def test_the_authors_statistics_are_those_of_their_code():
    images = bank(3)
    images = replace(images, images=images.images.repeat(1, 3, 1, 1))
    words = ("omniglot", "mini-imagenet", "fc100")
    mean, std = statistics(stream(*words, channels=3, normalise="authors"), images)
    assert torch.allclose(mean, torch.tensor([[0.922] * 3, [0.485, 0.456, 0.406], [0.507, 0.487, 0.441]]))
    assert torch.allclose(std, torch.tensor([[0.084] * 3, [0.229, 0.224, 0.225], [0.267, 0.256, 0.276]]))
    # The quirk: black ground of inverted images far below zero, strokes near one.
    assert (0 - mean[0, 0]) / std[0, 0] == pytest.approx(-10.98, abs=0.01)
    assert (1 - mean[0, 0]) / std[0, 0] == pytest.approx(0.93, abs=0.01)


def test_grey_images_take_the_mean_of_the_colours():
    mean, _ = statistics(stream("mini-imagenet", normalise="authors"), bank(1))
    assert mean.tolist() == [[pytest.approx(0.449, abs=1e-3)]]


@pytest.mark.parametrize("normalise", ["own", "authors"])
def test_statistics_of_sources_the_authors_do_not_have_are_measured(normalise):
    images = bank()
    mean, std = statistics(stream("a", "b", normalise=normalise), images)
    for index, each in enumerate(images.images.split(36)):
        pixels = each.float() / 255
        assert mean[index].item() == pytest.approx(pixels.mean().item(), rel=1e-5)
        assert std[index].item() == pytest.approx(pixels.std().item(), rel=1e-3)


def test_common_statistics_are_the_same_for_all_sources():
    images = bank()
    mean, std = statistics(stream("a", "b", normalise="common"), images)
    pixels = images.images.float() / 255
    assert mean[:, 0].tolist() == [pytest.approx(pixels.mean().item(), rel=1e-5)] * 2
    assert std[:, 0].tolist() == [pytest.approx(pixels.std().item(), rel=1e-3)] * 2


def test_a_set_of_one_colour_is_only_shifted():
    images = bank()
    mean, std = statistics(stream("a", "b", normalise="own"), replace(images, images=images.images * 0 + 51))
    assert mean.flatten().tolist() == [pytest.approx(0.2)] * 2
    assert std.flatten().tolist() == [1.0, 1.0]
