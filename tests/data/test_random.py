"""Random numbers as a pure function of where they are used."""

import pytest
import torch

from srwm.data import random
from srwm.data.random import random_bits, random_integers, stream_key

STEPS = torch.arange(40)


def chi_squared(observed, expected=None):
    """Pearson's statistic in units of its deviation: for a fair draw about 0, seldom beyond 4."""
    observed = observed.double()
    expected = observed.mean() if expected is None else expected
    freedom = observed.numel() - 1
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float((statistic - freedom) / (2 * freedom) ** 0.5)


def test_the_numbers_are_these_for_ever():
    """Runs that were begun go on with the same episodes under every later version."""
    keys = stream_key(7, 2, torch.tensor([0, 1, 2**40]))
    assert keys.tolist() == KEYS
    assert random_bits(keys, (2, 2)).tolist() == BITS
    assert random_integers(keys, torch.tensor([[5, 1000]] * 3)).tolist() == INTEGERS


KEYS = [-8968928347024980859, -9185870860377920328, -3853491829162966286]
BITS = [
    [[3870903186, 1382374081], [1265609906, 1347953848]],
    [[3013015033, 4215084159], [1346081528, 3997991069]],
    [[901081246, 3373948621], [2125894099, 523525651]],
]
INTEGERS = [[4, 321], [3, 981], [1, 785]]


def test_the_same_arguments_give_the_same_numbers_and_no_global_state_matters():
    first = random_bits(stream_key(1, 2, STEPS), (3,))
    torch.manual_seed(5)
    torch.rand(3)
    assert torch.equal(random_bits(stream_key(1, 2, STEPS), (3,)), first)


def test_each_seed_stream_and_step_gives_other_numbers():
    keys = torch.cat([stream_key(seed, stream, STEPS) for seed in range(-1, 5) for stream in range(5)])
    assert len(keys.unique()) == 6 * 5 * len(STEPS)
    assert len(random_bits(keys, ()).unique()) == len(keys)


def test_seed_and_stream_cannot_stand_for_each_other():
    assert stream_key(1, 2, STEPS[1]) != stream_key(2, 1, STEPS[1])
    assert stream_key(0, 1, STEPS[1]) != stream_key(1, 0, STEPS[1])


def test_a_step_alone_gives_what_it_gives_among_others():
    keys = stream_key(3, 1, STEPS.reshape(8, 5))
    below = torch.randint(1, 100, (8, 5, 6), generator=torch.Generator().manual_seed(0))
    bits, integers = random_bits(keys, (2, 3)), random_integers(keys, below)
    assert bits.shape == (8, 5, 2, 3)
    for step in STEPS:
        row, column = divmod(int(step), 5)
        key = stream_key(3, 1, step)
        assert key == keys[row, column]
        assert torch.equal(random_bits(key, (2, 3)), bits[row, column])
        assert torch.equal(random_integers(key, below[row, column]), integers[row, column])


def test_a_longer_array_begins_with_the_shorter_one():
    keys = stream_key(0, 0, STEPS)
    assert torch.equal(random_bits(keys, (9,))[:, :4], random_bits(keys, (4,)))


def test_bits_are_uniform():
    bits = random_bits(stream_key(0, 0, torch.arange(1000)), (100,))
    assert 0 <= int(bits.min()) <= int(bits.max()) < 2**32
    unit = bits.double() / 2**32
    assert float(unit.mean()) == pytest.approx(0.5, abs=4 / (12 * unit.numel()) ** 0.5)
    assert float(unit.var()) == pytest.approx(1 / 12, abs=4 * (1 / 180 / unit.numel()) ** 0.5)
    each = torch.stack([(bits >> place & 1).sum() for place in range(32)])
    assert (each.double() / bits.numel() - 0.5).abs().max() < 4.5 * 0.5 / bits.numel() ** 0.5


@pytest.mark.parametrize("below", [2, 5, 7, 100])
def test_integers_are_uniform(below):
    drawn = random_integers(stream_key(4, 1, torch.arange(2000)), torch.full((2000, 50), below))
    observed = drawn.flatten().bincount(minlength=below)
    assert len(observed) == below
    assert abs(chi_squared(observed)) < 4


def test_neighbours_are_independent():
    """Neighbouring steps, streams and positions: all pairs of values come equally often."""
    drawn = random_integers(stream_key(4, 1, torch.arange(3000)), torch.full((3000, 21), 5))
    other = random_integers(stream_key(4, 2, torch.arange(3000)), torch.full((3000, 21), 5))
    for one, two in ((drawn[:-1], drawn[1:]), (drawn[:, :-1], drawn[:, 1:]), (drawn, other)):
        assert abs(chi_squared((one * 5 + two).flatten().bincount(minlength=25))) < 4


def test_below_one_is_always_zero_and_the_largest_bound_is_kept():
    keys = stream_key(0, 0, STEPS)
    assert random_integers(keys, torch.ones(40, 3, dtype=torch.int64)).eq(0).all()
    largest = random_integers(keys, torch.full((40, 100), 2**31 - 1))
    assert 0 <= int(largest.min()) < 2**24 < int(largest.max()) < 2**31 - 1


def test_mixing_an_integer_equals_mixing_a_tensor():
    numbers = [0, 1, -1, 7, 2**63 - 1, -(2**63), 0x9E3779B97F4A7C15 - 2**64]
    assert random._mix(torch.tensor(numbers)).tolist() == [random._mix_integer(number) for number in numbers]


def test_mixing_is_splitmix_64():
    """The first numbers of the published generator from seed 0: it mixes multiples of the golden ratio."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    golden = 0x9E3779B97F4A7C15
    assert [random._mix_integer(golden * i) % 2**64 for i in (1, 2, 3)] == published
