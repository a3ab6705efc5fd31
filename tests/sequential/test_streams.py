"""What is drawn: segments of every source, labels one step late, trims at the end."""

import pytest
import torch

from srwm.data import episodes
from srwm.sequential import Bank, draw_streams, streams
from srwm.sequential.streams import rotations
from srwm.supervised import bank as image_bank

from .tiny import bank, config

STEPS = torch.arange(40)


def draw(steps=STEPS, images=None, *, batch_size=4, seed=0, rng_stream=0, stream=None, **options):
    images = bank() if images is None else images
    wanted = config(stream=stream or {}).stream
    return draw_streams(images, steps, wanted, batch_size=batch_size, seed=seed, rng_stream=rng_stream, **options)


def classes_of(images, drawn):
    """The class of each image within the bank, as one number."""
    ends = torch.cat(
        [one.starts + one.counts + first for one, first in zip(images.classes, images.firsts, strict=True)]
    )
    return torch.bucketize(drawn.place, ends, right=True)


def test_shapes_are_those_of_the_steps_and_the_batch():
    assert all(field.shape == (40, 4, 24) for field in draw())
    assert all(field.shape == (4, 24) for field in draw(torch.tensor(3)))


def test_without_trims_each_segment_has_every_class_equally_often_and_one_source():
    images = bank()
    drawn = draw(images=images, max_trim=0, order=(1, 0))
    assert drawn.mask.all()
    assert (drawn.source[..., :12] == 1).all()
    assert (drawn.source[..., 12:] == 0).all()
    assert (drawn.segment == torch.arange(24) // 12).all()
    classes = classes_of(images, drawn)
    for part in (slice(0, 12), slice(12, 24)):
        for label in range(3):
            is_label = drawn.labels[..., part] == label
            assert (is_label.sum(dim=-1) == 4).all()
            # A label stands for one class within a segment.
            low, high = (classes[..., part].masked_fill(~is_label, fill) for fill in (999, -1))
            assert torch.equal(low.amin(dim=-1), high.amax(dim=-1))
        assert (drawn.place[..., part].sort(dim=-1).values.diff(dim=-1) > 0).all()


def test_places_lie_in_the_part_of_the_bank_that_belongs_to_the_source():
    images = bank()
    drawn = draw(images=images)
    assert torch.equal(images.set_of_image()[drawn.place], drawn.source)


def test_the_label_of_the_step_before_comes_beside_each_image_also_across_the_border():
    drawn = draw(max_trim=0)
    assert (drawn.previous[..., 0] == -1).all()
    assert torch.equal(drawn.previous[..., 1:], drawn.labels[..., :-1])


def test_after_trimming_the_label_before_the_second_segment_is_the_last_that_was_kept():
    drawn = draw()
    first = (drawn.segment[..., :-1] == 0) & (drawn.segment[..., 1:] == 1)
    place = first.byte().argmax(dim=-1) + 1
    before = drawn.previous.gather(-1, place[..., None])
    assert torch.equal(before, drawn.labels.gather(-1, place[..., None] - 1))
    assert place.unique().numel() > 3


def test_trimmed_steps_stand_at_the_end_and_the_rest_is_as_without_trims():
    whole, trimmed = draw(max_trim=0), draw()
    for step in range(40):
        kept = [int((trimmed.mask[step, 0] & (trimmed.segment[step, 0] == i)).sum()) for i in range(2)]
        assert all(7 <= number <= 12 for number in kept)
        assert trimmed.mask[step, :, : sum(kept)].all()
        assert not trimmed.mask[step, :, sum(kept) :].any()
        wanted = torch.cat([whole.place[step, :, : kept[0]], whole.place[step, :, 12 : 12 + kept[1]]], dim=-1)
        assert torch.equal(trimmed.place[step, :, : sum(kept)], wanted)
        assert torch.equal(trimmed.place[step].sort(dim=-1).values, whole.place[step].sort(dim=-1).values)


def test_every_number_of_trims_from_none_to_the_most_comes_up_for_each_segment_by_itself():
    drawn = draw(torch.arange(600), batch_size=1)
    kept = torch.stack([(drawn.mask & (drawn.segment == i)).sum(dim=-1)[:, 0] for i in range(2)])
    trims = 12 - kept
    for of_segment in trims:
        counts = of_segment.bincount(minlength=6).double()
        # Chi-squared with 5 degrees of freedom: 20.5 is passed by chance once in a thousand times.
        assert ((counts - 100) ** 2 / 100).sum() < 20.5
    together = (trims[0] * 6 + trims[1]).bincount(minlength=36)
    assert (together > 0).all()


def test_all_streams_of_a_part_share_their_trims_and_their_order():
    drawn = draw(parts=2, stream={"order": "random"})
    lengths = drawn.mask.sum(dim=-1)
    assert torch.equal(lengths[:, 0], lengths[:, 1])
    assert torch.equal(lengths[:, 2], lengths[:, 3])
    assert not torch.equal(lengths[:, 0], lengths[:, 2])
    first = drawn.source[..., 0]
    assert torch.equal(first[:, 0], first[:, 1])
    assert not torch.equal(first[:, 0], first[:, 2])


@pytest.mark.parametrize(("parts", "firsts"), [(1, [0, 1, 0, 1]), (2, [0, 0, 0, 0])])
def test_alternating_lets_each_source_come_first_in_turn_part_by_part(parts, firsts):
    drawn = draw(parts=parts)
    assert drawn.source[:4, 0, 0].tolist() == firsts
    assert drawn.source[:4, 3, 0].tolist() == ([0, 1, 0, 1] if parts == 1 else [1, 1, 1, 1])


def test_alternating_goes_through_three_sources():
    drawn = draw(images=bank(3), stream={"sources": ("a", "b", "c")}, max_trim=0)
    assert drawn.source[:4, 0, ::12].tolist() == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]


def test_random_orders_come_up_equally_often():
    drawn = draw(
        torch.arange(600),
        images=bank(3),
        batch_size=1,
        max_trim=0,
        stream={
            "sources": ("a", "b", "c"),
            "order": "random",
        },
    )
    orders = drawn.source[:, 0, ::12] @ torch.tensor([9, 3, 1])
    numbers = orders.bincount()
    numbers = numbers[numbers > 0].double()
    assert len(numbers) == 6
    assert ((numbers - 100) ** 2 / 100).sum() < 20.5


def test_fixed_is_the_order_of_the_list():
    assert (draw(stream={"order": "fixed"}).source[..., 0] == 0).all()


def test_a_source_that_is_listed_twice_has_two_segments_with_classes_of_their_own():
    images = bank(1)
    twice = Bank.of_sets(images.names, [bank_set(images)], [0, 0])
    drawn = draw(images=twice, max_trim=0)
    assert (drawn.source == 0).all()
    assert not torch.equal(drawn.place[..., :12].sort(dim=-1).values, drawn.place[..., 12:].sort(dim=-1).values)


def bank_set(images):
    from dataclasses import replace

    return replace(images.classes[0], images=images.images)


def test_what_is_drawn_depends_on_seed_step_and_number_alone():
    one = draw()
    for step in (0, 17):
        alone = draw(torch.tensor(step))
        assert all(torch.equal(field[step], other) for field, other in zip(one, alone, strict=True))
    for other in (draw(seed=1), draw(rng_stream=1), draw(STEPS + 40)):
        assert not torch.equal(one.place, other.place)
        assert not torch.equal(one.mask, other.mask)


def test_sources_draw_independently_of_each_other():
    """The same set as two sources: their draws agree no more often than chance lets them."""
    images = bank(1)
    twice = Bank.of_sets(images.names, [bank_set(images)], [0, 0])
    drawn = draw(torch.arange(200), images=twice, max_trim=0, order=(0, 1))
    same = (drawn.labels[..., :12] == drawn.labels[..., 12:]).double().mean()
    assert abs(same - 1 / 3) < 0.02


def test_labels_are_permuted_at_random():
    """Chi-squared over the label that each class gets, fixed seed."""
    images = bank()
    drawn = draw(torch.arange(300), images=images, max_trim=0, order=(0, 1))
    pairs = (classes_of(images, drawn) * 3 + drawn.labels)[..., :12]
    counts = pairs.flatten().bincount(minlength=18)[:18].double() / 4  # each class stands four times in a stream
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 40.8  # 17 degrees of freedom, once in a thousand


def test_rotations_let_each_come_first_once():
    assert rotations(1) == [(0,)]
    assert rotations(3) == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]


def dependence(one, other):
    """Chi-squared of two drawn numbers against independence, and its degrees of freedom."""
    together = torch.zeros(int(one.max()) + 1, int(other.max()) + 1, dtype=torch.float64)
    together.index_put_((one, other), torch.ones(len(one), dtype=torch.float64), accumulate=True)
    expected = together.sum(dim=1, keepdim=True) * together.sum(dim=0) / together.sum()
    return float(((together - expected) ** 2 / expected).sum()), (together.shape[0] - 1) * (together.shape[1] - 1)


@pytest.mark.parametrize("sources", [2, 3])
def test_the_order_says_nothing_about_the_trims(sources):
    """One key for both would make them so: the source that is drawn first by the smallest number is trimmed least."""
    names = ("a", "b", "c")[:sources]
    drawn = draw(torch.arange(3000), images=bank(sources), batch_size=1, stream={"sources": names, "order": "random"})
    kept = torch.stack([(drawn.mask & (drawn.segment == i)).sum(dim=-1)[:, 0] for i in range(sources)])
    first = drawn.source[:, 0, 0]
    for of_segment in kept:
        chi_squared, freedom = dependence(first, of_segment - of_segment.min())
        assert freedom == 5 * (sources - 1)
        assert chi_squared < 30  # 20.5 and 29.6 are passed once in a thousand times


def test_neither_order_nor_trims_say_anything_about_images_and_labels():
    drawn = draw(torch.arange(3000), batch_size=1, stream={"order": "random"})
    trims = 12 - (drawn.mask & (drawn.segment == 0)).sum(dim=-1)[:, 0]
    numbers = {"order": drawn.source[:, 0, 0], "trims": trims}
    pictures = {"label": drawn.labels[:, 0, 0], "place": drawn.place[:, 0, 0] % 6}
    for number in numbers.values():
        for picture in pictures.values():
            chi_squared, freedom = dependence(number, picture)
            assert freedom <= 25
            assert chi_squared < 53  # of 25 degrees of freedom, passed once in a thousand times


@pytest.fixture
def keys_in_use(monkeypatch):
    """Every key from which a random number is drawn, in the order of the draws."""
    drawn = []
    used = {image_bank: ["random_bits"], streams: ["random_integers"], episodes: ["random_bits", "random_integers"]}
    for module, names in used.items():
        for name in names:
            whole = getattr(module, name)

            def noted(key, shape, whole=whole):
                drawn.append(key.flatten())
                return whole(key, shape)

            monkeypatch.setattr(module, name, noted)
    return drawn


@pytest.mark.parametrize("order", ["random", "alternating"])
def test_no_two_purposes_share_a_key(keys_in_use, order):
    draw(torch.arange(20), stream={"order": order}, parts=2)
    keys = torch.cat(keys_in_use)
    # The order and the trims, each part of each step; of each source and row classes, images, support and queries.
    of_parts = 20 * 2 * (2 if order == "random" else 1)
    assert len(keys) == of_parts + 2 * 20 * 4 * (1 + 3 + 1 + 1)
    assert len(keys.unique()) == len(keys)


def test_the_streams_of_a_seed_stay_what_they_are():
    drawn = draw(torch.tensor(3), batch_size=2, parts=2, seed=1, rng_stream=2, stream={"order": "random"})
    assert drawn.place.tolist() == KNOWN_PLACES
    assert drawn.mask.sum(dim=-1).tolist() == [22, 20]


KNOWN_PLACES = [
    [71, 57, 53, 48, 58, 55, 56, 70, 50, 69, 66, 0, 18, 33, 21, 35, 22, 5, 1, 23, 30, 2, 51, 34],
    [29, 12, 16, 13, 28, 24, 20, 25, 17, 22, 18, 60, 64, 50, 39, 38, 48, 53, 63, 41, 23, 40, 52, 62],
]
