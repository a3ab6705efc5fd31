"""The second loss: images told apart by their distance from the means of the classes."""

import pytest
import torch
from torch.nn import functional as F

from sequential.test_trainer import gradients
from sequential.tiny import trainer
from srwm.supervised.prototypes import leave_one_out_losses


def by_loop(features, labels, segment, mask):
    """The same, one image after the other."""
    losses = torch.zeros(labels.shape)
    for b, t in mask.nonzero().tolist():
        others = mask[b] & (segment[b] == segment[b, t]) & (torch.arange(labels.shape[1]) != t)
        classes = sorted(set(labels[b, others].tolist()))
        if int(labels[b, t]) not in classes:
            continue
        means = torch.stack([features[b, others & (labels[b] == label)].mean(dim=0) for label in classes])
        scores = -(features[b, t] - means).square().sum(dim=-1) / features.shape[-1] ** 0.5
        losses[b, t] = F.cross_entropy(scores[None], torch.tensor([classes.index(int(labels[b, t]))]))
    return losses


def problem(t=12, ways=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(4, t, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(ways, (4, t), generator=generator)
    segment = (torch.arange(t) * 2 // t).expand(4, t)
    mask = torch.arange(t).expand(4, t) < t - 2
    return features, labels, segment, mask


def test_it_is_what_a_plain_loop_finds():
    features, labels, segment, mask = problem()
    found = leave_one_out_losses(features, labels, segment, mask, ways=3, segments=2)
    assert torch.allclose(found, by_loop(features, labels, segment, mask).double(), atol=1e-5)
    assert found[mask].gt(0).any()
    assert not found[~mask].any()


def test_images_that_are_alone_in_their_class_do_not_count_and_give_no_nan():
    features, _, segment, mask = problem(t=3)
    labels = torch.arange(3).expand(4, 3)
    features.requires_grad_()
    found = leave_one_out_losses(features, labels, segment, torch.ones_like(mask), ways=3, segments=2)
    found.sum().backward()
    assert not found.any()
    assert not features.grad.any()
    nothing = leave_one_out_losses(features, labels, segment, torch.zeros_like(mask), ways=3, segments=2)
    assert not nothing.any()


def test_its_gradient_is_right():
    features, labels, segment, mask = problem(t=8)
    assert torch.autograd.gradcheck(
        lambda x: leave_one_out_losses(x, labels, segment, mask, ways=3, segments=2), features.requires_grad_()
    )


def test_features_that_lie_together_by_class_cost_nothing():
    _, labels, segment, mask = problem()
    found = leave_one_out_losses(100 * torch.eye(3)[labels], labels, segment, mask, ways=3, segments=2)
    assert found.max() < 1e-3


def test_its_weight_adds_to_the_loss_and_to_the_gradients_of_the_vision_part_alone():
    plain, one, two = (trainer(stream={"prototypical_loss": weight}) for weight in (0.0, 1.0, 2.0))
    found = [gradients(each) for each in (plain, one, two)]
    losses = [each.metrics()["train/loss"] for each in (plain, one, two)]
    assert losses[2] - losses[1] == pytest.approx(losses[1] - losses[0], rel=1e-4)
    assert losses[1] > losses[0]
    for name, gradient in found[0].items():
        is_encoder = name.startswith("encoder")
        assert torch.equal(found[1][name], gradient) != is_encoder or not gradient.any(), name
