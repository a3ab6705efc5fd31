"""How the learning rate goes on."""

import pytest

from srwm.supervised.config import OptimizerConfig

NOAM = OptimizerConfig(schedule="noam", warmup_steps=5000, learning_rate=123.0)
COSINE = OptimizerConfig(schedule="cosine", learning_rate=2e-3, warmup_steps=10)


def noam(number, hidden_size=256):
    """The rate of the step that is the `number`-th, counted from 1 as in the paper."""
    return NOAM.rate(number - 1, hidden_size=hidden_size, total_steps=600_000)


def cosine(step, total_steps=110):
    return COSINE.rate(step, hidden_size=256, total_steps=total_steps)


def test_noam_has_the_authors_values():
    assert noam(5000) == pytest.approx(8.84e-4, rel=1e-3)
    assert noam(600_000) == pytest.approx(8.1e-5, rel=1e-2)
    assert noam(5000, hidden_size=1024) == pytest.approx(4.42e-4, rel=1e-3)
    assert noam(1) == pytest.approx(256**-0.5 * 5000**-1.5)


def test_noam_rises_to_its_peak_and_then_falls():
    rates = [noam(number) for number in range(4000, 6000)]
    assert rates.index(max(rates)) == 1000
    assert rates[:1001] == sorted(rates[:1001])
    assert rates[1000:] == sorted(rates[1000:], reverse=True)


def test_a_cosine_warms_up_in_a_straight_line_and_ends_at_zero():
    assert [cosine(step) for step in range(10)] == pytest.approx([2e-4 * number for number in range(1, 11)])
    assert cosine(59) == pytest.approx(1e-3)
    assert cosine(109) == pytest.approx(0, abs=1e-12)
    assert cosine(500) == pytest.approx(0, abs=1e-12)
    rates = [cosine(step) for step in range(9, 110)]
    assert rates == sorted(rates, reverse=True)


def test_a_cosine_whose_warm_up_is_all_of_it_does_not_break():
    assert cosine(9, total_steps=10) == pytest.approx(2e-3)


def test_a_constant_rate_has_no_warm_up():
    constant = OptimizerConfig(learning_rate=3e-4)
    assert {constant.rate(step, hidden_size=8, total_steps=10) for step in (0, 5, 9)} == {3e-4}
