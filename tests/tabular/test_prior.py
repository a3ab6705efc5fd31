import pytest
import torch

from srwm.tabular import PriorConfig, draw_tasks
from srwm.tabular.prior import TEST, TRAINING

PRIOR = PriorConfig(most_features=30)


def draw(step=0, *, config=PRIOR, seed=0, rng_stream=TRAINING, **options):
    return draw_tasks(config, seed=seed, rng_stream=rng_stream, step=step, batch_size=64, **options)


def test_a_batch_depends_on_seed_stream_and_step_alone():
    first = draw(3)
    torch.rand(7)
    assert all(torch.equal(a, b) for a, b in zip(first, draw(3), strict=True))
    for other in (draw(4), draw(3, seed=1), draw(3, rng_stream=TEST)):
        assert not torch.equal(first.labels, other.labels)


def test_tasks_are_of_many_sizes_within_the_bounds():
    drawn = [draw(step) for step in range(30)]
    features = torch.cat([tasks.num_features for tasks in drawn])
    assert 1 <= int(features.min()) < 5 < 25 < int(features.max()) <= 30
    classes = [len(row.unique()) for tasks in drawn for row in tasks.labels]
    assert min(classes) <= 2
    assert max(classes) >= 8
    assert {int(label) for tasks in drawn for label in tasks.labels.unique()} == set(range(10))


def test_features_that_a_task_does_not_have_are_zero_and_all_are_finite():
    tasks = draw()
    there = torch.arange(tasks.x.shape[2]) < tasks.num_features[:, None]
    assert bool(tasks.x.isfinite().all())
    assert not tasks.x[~there[:, None].expand_as(tasks.x)].any()
    assert tasks.x.shape == (64, PRIOR.examples, int(tasks.x.shape[2]))


def test_no_label_is_known_without_the_examples():
    # Whatever the class, each output of the head stands for it equally often.
    counts = torch.cat([draw(step).labels[:, 0] for step in range(30)]).bincount(minlength=10)
    expected = 30 * 64 / 10
    assert float(((counts - expected) ** 2 / expected).sum()) < 27.9  # chi-squared, 9 degrees of freedom, p = 0.001


def test_the_scale_is_fixed_in_as_many_tasks_as_the_configuration_says():
    assert not draw(config=PriorConfig(whole_support=0.0)).scaled_by.any()
    scaled = draw(config=PriorConfig(whole_support=1.0)).scaled_by
    assert 3 <= int(scaled.min()) < int(scaled.max()) < PRIOR.examples


def test_labels_follow_from_features():
    """By the nearest example among the others, far more often than by chance; of noise alone that cannot be."""
    config = PriorConfig(most_features=4, label_noise=0.0, irrelevant=0.0, imbalance=0.0)
    tasks = draw(config=config, examples=200)
    z = (tasks.x - tasks.x.mean(dim=1, keepdim=True)) / tasks.x.std(dim=1, keepdim=True).clamp_min(1e-6)
    distances = torch.cdist(z, z) + 1e9 * torch.eye(200)
    found = tasks.labels.gather(1, distances.argmin(dim=2))
    most = torch.stack([row.bincount().max() for row in tasks.labels]).sum() / tasks.labels.numel()
    assert float((found == tasks.labels).float().mean()) > float(most) + 0.15


@pytest.mark.parametrize("name", ["label_noise", "irrelevant", "imbalance", "whole_support"])
def test_a_share_is_between_zero_and_one(name):
    with pytest.raises(ValueError, match=rf"{name}=1\.5; expected 0 to 1"):
        PriorConfig(**{name: 1.5})
