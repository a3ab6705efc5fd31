"""Drawing episodes: by the standard protocol, and a pure function of (seed, stream, step)."""

import itertools

import pytest
import torch

from srwm.data import Episodes, ImageSet, check_enough, draw_episodes, episodes
from srwm.errors import InputError

from .test_random import chi_squared

COUNTS = [4, 7, 3, 5, 4, 9, 3, 6]
"""Classes of different sizes."""


def image_set(counts=COUNTS):
    images = torch.zeros(sum(counts), 1, 1, 1, dtype=torch.uint8)
    return ImageSet.of_counts("letters/train", images, list(counts), [f"class{i}" for i in range(len(counts))])


def draw(steps=0, *, counts=COUNTS, batch_size=64, ways=3, shots=2, queries=1, seed=0, rng_stream=0):
    steps = torch.tensor(steps) if isinstance(steps, int) else steps
    options = {"batch_size": batch_size, "ways": ways, "shots": shots, "queries": queries}
    return draw_episodes(image_set(counts), steps, **options, seed=seed, rng_stream=rng_stream)


def class_of(places, counts=COUNTS):
    """The class that each image belongs to."""
    return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))[places]


def assert_equal(one, other):
    for first, second in zip(one, other, strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize(("ways", "shots", "queries"), [(3, 2, 1), (3, 2, 3), (3, 1, 5), (8, 2, 8), (1, 2, 1)])
def test_an_episode_is_what_it_should_be(ways, shots, queries):
    drawn = draw(ways=ways, shots=shots, queries=queries, batch_size=300)
    assert drawn.support.shape == drawn.support_labels.shape == (300, ways * shots)
    assert drawn.query.shape == drawn.query_labels.shape == (300, queries)
    classes, query_classes = class_of(drawn.support), class_of(drawn.query)
    for support, labels, query, query_labels, of_support, of_query in zip(
        *(t.tolist() for t in (*drawn, classes, query_classes)), strict=True
    ):
        assert len(set(of_support)) == ways, "classes are distinct"
        assert sorted(labels) == sorted(list(range(ways)) * shots), "each label comes K times"
        assert len({*support, *query}) == len(support) + len(query), "no image comes twice"
        named = dict(zip(of_support, labels, strict=True))
        assert all(named[c] == label for c, label in zip(of_support, labels, strict=True)), "a class has one label"
        assert [named[c] for c in of_query] == query_labels, "queries are labelled as the support is"


def test_several_queries_go_through_the_classes_evenly():
    labels = draw(ways=3, shots=1, queries=5, batch_size=200).query_labels
    assert (labels[:, :3].sort().values == torch.arange(3)).all()
    assert (labels[:, 3] != labels[:, 4]).all()


def test_every_label_permutation_comes_equally_often():
    """Which label a class gets: all orders of the same three classes (promise 31)."""
    drawn = draw(counts=[4] * 3, ways=3, shots=1, batch_size=12_000)
    classes = class_of(drawn.support, [4] * 3)
    label_of = torch.empty_like(classes).scatter_(1, classes, drawn.support_labels)
    observed = (label_of * torch.tensor([9, 3, 1])).sum(dim=1).bincount()
    assert (observed > 0).sum() == 6
    assert abs(chi_squared(observed[observed > 0])) < 4


def test_every_order_of_the_support_comes_equally_often():
    labels = draw(ways=3, shots=1, batch_size=12_000).support_labels
    observed = (labels * torch.tensor([9, 3, 1])).sum(dim=1).bincount()
    assert (observed > 0).sum() == 6
    assert abs(chi_squared(observed[observed > 0])) < 4


def test_the_order_of_the_support_says_nothing_about_the_classes():
    drawn = draw(ways=3, shots=1, batch_size=20_000)
    pairs = drawn.support_labels[:, 0] * len(COUNTS) + class_of(drawn.support)[:, 0]
    assert abs(chi_squared(pairs.bincount(minlength=3 * len(COUNTS)))) < 4


@pytest.mark.parametrize("queries", [1, 2])
def test_a_query_has_every_label_equally_often(queries):
    labels = draw(ways=5, shots=1, queries=queries, batch_size=10_000).query_labels
    for column in labels.unbind(dim=1):
        assert abs(chi_squared(column.bincount(minlength=5))) < 4


def test_the_label_of_a_query_is_independent_of_the_order_of_the_support():
    drawn = draw(ways=5, shots=1, batch_size=20_000)
    place = (drawn.support_labels == drawn.query_labels).long().argmax(dim=1)
    assert abs(chi_squared(place.bincount(minlength=5))) < 4


def test_every_set_of_classes_comes_equally_often():
    drawn = draw(counts=[3] * 5, ways=2, shots=1, batch_size=20_000)
    chosen = class_of(drawn.support, [3] * 5).sort(dim=1).values
    observed = torch.tensor(
        [(chosen == torch.tensor(pair)).all(dim=1).sum() for pair in itertools.combinations(range(5), 2)]
    )
    assert observed.sum() == 20_000
    assert abs(chi_squared(observed)) < 4


@pytest.mark.parametrize("field", ["support", "query"])
def test_every_image_of_a_class_is_drawn_equally_often(field):
    drawn = getattr(draw(ways=3, shots=1, queries=3, batch_size=20_000), field)
    observed = drawn.flatten().bincount(minlength=sum(COUNTS)).split(COUNTS)
    for of_class in observed:
        assert abs(chi_squared(of_class)) < 4.5


def test_steps_drawn_one_by_one_equal_those_drawn_at_once():
    steps = torch.tensor([[0, 1, 2], [70, 3, 10**9]])
    together = draw(steps, batch_size=6, shots=1, queries=4)
    assert together.support.shape == (2, 3, 6, 3)
    for row in range(2):
        for column in range(3):
            alone = draw(steps[row, column], batch_size=6, shots=1, queries=4)
            assert_equal(alone, Episodes(*(field[row, column] for field in together)))


def test_a_smaller_batch_is_the_beginning_of_a_larger_one():
    assert_equal(draw(batch_size=5), Episodes(*(field[:5] for field in draw(batch_size=40))))


def test_each_seed_stream_and_step_draws_other_episodes():
    drawn = [
        tuple(draw(step, seed=seed, rng_stream=rng_stream, batch_size=2).support.flatten().tolist())
        for seed, rng_stream, step in itertools.product(range(3), range(3), range(3))
    ]
    assert len(set(drawn)) == 27


def test_the_same_arguments_draw_the_same_whatever_torchs_random_state_is():
    first = draw(5)
    torch.rand(7)
    assert_equal(draw(5), first)


def test_what_was_drawn_once_is_drawn_for_ever():
    drawn = draw(3, batch_size=2, queries=2, seed=1, rng_stream=2)
    assert [field.tolist() for field in drawn] == KNOWN


KNOWN = [
    [[13, 38, 11, 14, 36, 15], [34, 32, 20, 0, 2, 21]],
    [[1, 0, 1, 2, 0, 2], [2, 2, 0, 1, 1, 0]],
    [[39, 18], [3, 33]],
    [[0, 2], [1, 2]],
]


@pytest.mark.gpu
def test_a_gpu_draws_the_same():
    steps = torch.arange(6)
    there = draw(steps.cuda(), shots=1, queries=4)
    assert_equal(Episodes(*(field.cpu() for field in there)), draw(steps, shots=1, queries=4))


def test_too_few_classes_get_a_sentence():
    with pytest.raises(InputError, match="letters/train has 8 classes; 9-way episodes need at least 9"):
        draw(ways=9, shots=1)


def test_too_few_images_get_a_sentence_that_names_the_class():
    sentence = "class 'class2' of letters/train has 3 images; 2 to learn from and 2 to ask for need 4"
    with pytest.raises(InputError, match=sentence):
        draw(ways=3, shots=2, queries=4)
    check_enough(image_set(), 3, 2, 3)


@pytest.mark.parametrize("name", ["ways", "shots", "queries"])
def test_nothing_at_all_gets_a_sentence(name):
    with pytest.raises(InputError, match=f"{name}=0; expected at least 1"):
        draw(**{name: 0})


def test_each_purpose_of_each_episode_has_a_key_of_its_own(monkeypatch):
    drawn = []
    for name in ("random_bits", "random_integers"):
        whole = getattr(episodes, name)

        def noted(key, shape, whole=whole):
            drawn.append(key.flatten())
            return whole(key, shape)

        monkeypatch.setattr(episodes, name, noted)
    draw(torch.arange(30), batch_size=16, ways=3, shots=1, queries=5)
    keys = torch.cat(drawn)
    # Of each episode: its classes, the images of each class, the order of the support, two rounds of queries.
    assert len(keys) == 30 * 16 * (1 + 3 + 1 + 2)
    assert len(keys.unique()) == len(keys)


def test_the_order_of_the_support_says_nothing_about_classes_images_and_the_query():
    """One key for two purposes would make one follow from the other."""
    drawn = draw(torch.arange(60), counts=[6] * 6, ways=3, shots=2, queries=1, batch_size=64)
    numbers = {
        "order": drawn.support_labels[..., 0],
        "class": class_of(drawn.support, [6] * 6)[..., 0],
        "query": drawn.query_labels[..., 0],
        "image": drawn.support[..., 0] % 6,
    }
    for one, other in itertools.combinations(numbers.values(), 2):
        together = torch.zeros(int(one.max()) + 1, int(other.max()) + 1, dtype=torch.float64)
        together.index_put_((one.flatten(), other.flatten()), torch.ones(one.numel(), dtype=torch.float64), True)
        expected = together.sum(dim=1, keepdim=True) * together.sum(dim=0) / together.sum()
        # With at most 25 degrees of freedom, 52.6 is passed once in a thousand times.
        assert ((together - expected) ** 2 / expected).sum() < 52.6


def test_an_episode_has_one_query_and_is_of_stream_0_unless_told_otherwise():
    unnamed = draw_episodes(image_set(), torch.tensor(3), batch_size=2, ways=3, shots=2, seed=1)
    assert_equal(unnamed, draw(3, batch_size=2, queries=1, seed=1, rng_stream=0))
