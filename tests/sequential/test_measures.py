"""Measures against sequences made by hand."""

import pytest
import torch

from srwm.sequential.measures import (
    accuracy_by_step,
    count_right,
    final_level,
    instance_numbers,
    steps_to_recover,
    unused_label_accuracy,
)


def test_instances_are_counted_within_a_class_and_a_segment():
    """Golden check 10: a sequence made by hand, with a class in both segments and one that comes once."""
    labels = torch.tensor([[0, 1, 0, 0, 2, 1, 0, 1, 1, 0], [2, 2, 2, 1, 1, 0, 0, 0, 1, 2]])
    segment = torch.tensor([[0, 0, 0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]])
    found = instance_numbers(labels, segment, groups=6, ways=3)
    assert found.tolist() == [[1, 1, 2, 3, 1, 2, 1, 1, 2, 2], [1, 2, 3, 1, 2, 1, 2, 3, 1, 1]]


def test_instances_equal_those_of_a_plain_loop():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (5, 2, 30), generator=generator)
    segment = torch.randint(3, (5, 2, 30), generator=generator).sort(dim=-1).values
    found = instance_numbers(labels, segment, groups=12, ways=4)
    for i in range(5):
        for j in range(2):
            seen = {}
            for t in range(30):
                key = (int(segment[i, j, t]), int(labels[i, j, t]))
                seen[key] = seen.get(key, 0) + 1
                assert found[i, j, t] == seen[key]


RIGHT = torch.tensor([[0, 1, 1, 1, 0, 1], [1, 0, 1, 0, 0, 0]], dtype=torch.bool)
INSTANCE = torch.tensor([[1, 1, 2, 2, 3, 1], [1, 2, 1, 3, 2, 1]])
FIRST = torch.tensor([[1, 1, 1, 1, 1, 0]] * 2, dtype=torch.bool)


def test_right_answers_are_counted_by_instance_and_stream():
    hits, asked = count_right(RIGHT, INSTANCE, FIRST, (0, 1, 2, 3, 5))
    assert hits.tolist() == [[3, 1, 2, 0, 0], [2, 2, 0, 0, 0]]
    assert asked.tolist() == [[5, 2, 2, 1, 0], [5, 2, 2, 1, 0]]


def test_only_the_steps_that_count_are_counted():
    hits, asked = count_right(RIGHT, INSTANCE, ~FIRST, (0, 1))
    assert (hits.tolist(), asked.tolist()) == ([[1, 1], [0, 0]], [[1, 1], [1, 1]])


def test_accuracy_by_step_is_the_mean_over_streams():
    assert accuracy_by_step(RIGHT).tolist() == [0.5, 0.5, 1.0, 0.5, 0.0, 0.5]


def test_the_final_level_is_that_of_the_last_fifth():
    assert final_level(torch.tensor([0.0] * 8 + [0.4, 0.6])) == pytest.approx(0.5)
    assert final_level(torch.tensor([0.1, 0.3])) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("curve", "window", "steps"),
    [
        # 90% of 0.8 is 0.72: the windows are 0.0, 0.2, 0.6, 0.8 and so on.
        ([0.0, 0.0, 0.4, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8], 2, 5),
        ([0.0, 0.0, 0.4, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8], 1, 4),
        ([0.5] * 10, 3, 3),
        ([0.0] * 10, 2, 2),
        ([0.2, 0.2, 0.2, 0.2, 1.0], 2, None),
        ([1.0, 1.0], 3, None),
    ],
)
def test_the_time_to_recover_is_where_a_window_first_comes_near_the_final_level(curve, window, steps):
    assert steps_to_recover(torch.tensor(curve, dtype=torch.float64), window=window) == steps


def test_a_model_at_chance_has_nothing_to_recover():
    for level, steps in ((0.21, None), (0.25, 5)):
        curve = torch.full((10,), level, dtype=torch.float64)
        assert steps_to_recover(curve, window=5, chance=0.2) == steps


def test_the_share_of_the_final_level_can_be_chosen():
    curve = torch.tensor([0.0, 0.4, 0.6, 0.8, 0.8])
    assert [steps_to_recover(curve, window=1, share=share) for share in (0.5, 0.75, 1.0)] == [2, 3, 4]


def test_guessing_unused_labels_is_right_as_often_as_a_simulation_says():
    assert unused_label_accuracy(1) == 1
    assert unused_label_accuracy(2) == 0.75
    generator = torch.Generator().manual_seed(0)
    # The i-th class that comes up has one of the ways - i labels that are left.
    left = 5 - torch.arange(5)
    guess = (torch.rand(20_000, 5, generator=generator) * left).floor()
    truth = (torch.rand(20_000, 5, generator=generator) * left).floor()
    assert unused_label_accuracy(5) == pytest.approx((guess == truth).double().mean().item(), abs=0.005)
