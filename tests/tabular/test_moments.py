import pytest
import torch

from srwm.tabular.moments import add_examples, before_and_with, class_distances, no_moments, scale_of, standardise

NAN = float("nan")


@pytest.fixture
def drawn():
    """Examples of two tasks of which some numbers are missing, and their labels."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 9, 3, generator=generator, dtype=torch.float64)
    x[torch.rand(x.shape, generator=generator) < 0.2] = NAN
    return x, torch.randint(4, (2, 9), generator=generator)


def empty(x):
    return no_moments(len(x), 4, x.shape[2], x.nan_to_num())


def test_sums_in_pieces_are_those_of_the_whole(drawn):
    x, labels = drawn
    whole = add_examples(empty(x), x, labels)
    pieces = add_examples(add_examples(empty(x), x[:, :4], labels[:, :4]), x[:, 4:], labels[:, 4:])
    assert all(torch.allclose(a, b) for a, b in zip(whole, pieces, strict=True))


def test_each_example_finds_the_sums_of_those_before_it(drawn):
    x, labels = drawn
    start = add_examples(empty(x), x.flip(1), labels)
    before, now = before_and_with(start, x, labels)
    for t in range(x.shape[1]):
        wanted = add_examples(start, x[:, :t], labels[:, :t])
        assert all(torch.allclose(a[:, min(t, a.shape[1] - 1)], b) for a, b in zip(before, wanted, strict=True))
        with_it = add_examples(start, x[:, : t + 1], labels[:, : t + 1])
        assert all(torch.allclose(a[:, t], b) for a, b in zip(now[:3], with_it[:3], strict=True))


def test_what_is_asked_for_comes_next_by_itself(drawn):
    x, labels = drawn
    start = add_examples(empty(x), x, labels)
    _, now = before_and_with(start, x, None)
    alone = add_examples(start, x[:, 5:6], labels[:, 5:6])
    assert all(torch.allclose(a[:, 5], b) for a, b in zip(now[:3], alone[:3], strict=True))


def test_the_scale_is_that_of_the_numbers_that_are_there():
    x = torch.tensor([[1.0, 7.0, NAN], [3.0, 7.0, 2.0], [NAN, 7.0, NAN]], dtype=torch.float64)
    for mean, deviation in (scale_of(x), standardise(add_examples(empty(x[None]), x[None], torch.zeros(1, 3).long()))):
        assert mean.flatten().tolist() == [2.0, 7.0, 2.0]
        assert deviation.flatten().tolist() == [1.0, 0.0, 0.0]


def test_the_scale_of_large_numbers_is_exact():
    x = 1e9 + torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    assert scale_of(x).deviation.item() == pytest.approx((2 / 3) ** 0.5, rel=1e-6)


def test_distances_are_those_of_standardised_examples_to_the_mean_of_each_class(drawn):
    x, labels = (part[:1] for part in drawn)
    x = x.nan_to_num(0.3)
    moments = add_examples(empty(x), x, labels)
    scale = standardise(moments)
    distances, counts = class_distances(moments, scale, x[:, 0])
    z = (x - scale.mean) / scale.deviation
    for c in range(4):
        own = z[0][labels[0] == c]
        assert counts[0, c] == len(own)
        if len(own):
            assert distances[0, c] == pytest.approx(float((z[0, 0] - own.mean(dim=0)).square().sum()))


def test_a_missing_number_has_no_part_in_a_distance(drawn):
    x, labels = (part[:1].nan_to_num(0.3) for part in drawn)
    asked = x[:, 0].clone()
    asked[0, 1] = NAN
    moments, kept = add_examples(empty(x), x, labels), [0, 2]
    found, _ = class_distances(moments, standardise(moments), asked)
    fewer = add_examples(empty(x[:, :, kept]), x[:, :, kept], labels)
    wanted, _ = class_distances(fewer, standardise(fewer), asked[:, kept])
    assert torch.allclose(found, wanted)
