"""The terms of the loss, and how they are put together."""

import pytest
import torch
from torch.nn import functional as F

from srwm.continual import LossConfig
from srwm.continual.loss import (
    cross_entropies,
    first_of_each_class,
    pairs,
    source_factors,
    tasks_prototypical_loss,
    term_name,
    weighted_mean,
)


def test_there_is_a_term_for_every_task_at_the_end_of_itself_and_of_each_later_one():
    assert [term_name(*pair) for pair in pairs(3)] == [
        "task1_after1",
        "task1_after2",
        "task2_after2",
        "task1_after3",
        "task2_after3",
        "task3_after3",
    ]
    assert len(pairs(20)) == 20 * 21 / 2


def test_a_term_is_the_mean_cross_entropy_of_a_tasks_queries():
    scores, labels = torch.randn(3, 2, 4, 5), torch.randint(5, (3, 2, 4))
    found = cross_entropies(scores, labels)
    for row in range(3):
        for task in range(2):
            assert found[row, task] == pytest.approx(F.cross_entropy(scores[row, task], labels[row, task]).item())


@pytest.mark.parametrize(("forward", "backward"), [(1.0, 1.0), (2.0, 0.5), (1.0, 0.0), (0.0, 1.0)])
def test_weights_go_by_name_and_the_mean_is_over_all_terms(forward, backward):
    terms = {pair: torch.rand(4) for pair in pairs(3)}
    config = LossConfig(forward=forward, backward=backward)
    found = weighted_mean(terms, torch.zeros(4, 3, dtype=torch.long), config)
    by_hand = sum(
        (forward if after == task else backward) * sum(each.tolist()) / 4 for (after, task), each in terms.items()
    )
    assert found.item() == pytest.approx(by_hand / 6)


def test_with_weights_of_one_it_is_the_plain_mean_of_all_terms():
    terms = {pair: torch.rand(4) for pair in pairs(5)}
    found = weighted_mean(terms, torch.zeros(4, 5, dtype=torch.long), LossConfig())
    assert found.item() == pytest.approx(torch.stack(list(terms.values())).mean().item())


def test_the_factor_of_a_source_is_on_the_forward_terms_of_its_tasks_alone():
    source = torch.tensor([[0, 1], [1, 0]])
    terms = {(0, 0): torch.tensor([1.0, 10.0]), (1, 0): torch.tensor([5.0, 7.0]), (1, 1): torch.tensor([2.0, 20.0])}
    found = weighted_mean(terms, source, LossConfig(sources=(0.1, 3.0)))
    by_hand = (0.1 * 1 + 3 * 10) / 2 + (5 + 7) / 2 + (3 * 2 + 0.1 * 20) / 2
    assert found.item() == pytest.approx(by_hand / 3)
    assert source_factors(source[:, 0], LossConfig(sources=(0.1, 3.0)), torch.zeros(2)).tolist() == pytest.approx(
        [0.1, 3]
    )


def test_the_first_example_of_each_class_is_found():
    labels = torch.tensor([[4, 4, 5, 5], [5, 4, 4, 5], [4, 4, 4, 5]])
    assert first_of_each_class(labels, 2).tolist() == [[0, 2], [0, 1], [0, 3]]


@pytest.mark.parametrize("offset", [0, 2])
def test_the_prototypical_loss_tells_the_classes_of_all_tasks_apart(offset):
    generator = torch.Generator().manual_seed(0)
    support, query = (torch.randn(3, 2, 4, 6, generator=generator) for _ in range(2))
    local = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 0]]).expand(3, 2, 4)
    labels = local + offset * torch.arange(2)[:, None]
    found = tasks_prototypical_loss(support, labels, query, labels, 2)
    losses = []
    for row in range(3):
        means = [support[row, task][local[row, task] == way].mean(dim=0) for task in range(2) for way in range(2)]
        for task in range(2):
            for each, way in zip(query[row, task], local[row, task].tolist(), strict=True):
                scores = torch.stack([-(each - mean).square().sum() / 6**0.5 for mean in means])
                losses.append(F.cross_entropy(scores[None], torch.tensor([2 * task + way])))
    assert found.item() == pytest.approx(torch.stack(losses).mean().item(), rel=1e-5)


@pytest.mark.parametrize("name", ["forward", "backward", "few_shot", "prototypical"])
def test_weights_below_zero_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}=-1"):
        LossConfig(**{name: -1.0})
