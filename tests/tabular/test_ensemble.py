import pytest
import torch

from srwm.tabular import Ensemble, principal_projection, scale_of

from .tiny import network


@pytest.fixture(scope="module")
def ensemble():
    return Ensemble(network(), members=3)


def draw(features=3):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(9, features, generator=generator, dtype=torch.float64)
    return x, torch.randint(4, (9,), generator=generator)


def test_answers_are_probabilities_of_the_classes_that_were_seen(ensemble):
    x, labels = draw()
    chances = ensemble.predict(x, ensemble.learn(x, labels % 3, ensemble.start(3)))
    assert torch.allclose(chances.sum(dim=1), torch.ones(9, dtype=torch.float64))
    assert bool((chances[:, :3] > 0).all())
    assert not chances[:, 3:].any()


def test_features_that_come_later_change_nothing_while_they_are_missing(ensemble):
    x, labels = draw(4)
    x[:5, 3] = torch.nan
    late = ensemble.grow(ensemble.learn(x[:5, :3], labels[:5], ensemble.start(3)), 4)
    before = ensemble.learn(x[:5], labels[:5], ensemble.start(4))
    assert torch.equal(late.members.moments.class_total, before.members.moments.class_total)
    assert torch.equal(late.members.projection, before.members.projection)
    after = ensemble.learn(x[5:], labels[5:], late)
    assert bool(ensemble.predict(x, after).isfinite().all())


def test_members_turn_number_and_order_in_ways_of_their_own(ensemble):
    state = ensemble.start(3)
    assert len({tuple(row.tolist()) for row in state.slots}) > 1
    assert not torch.equal(state.members.projection[0], state.members.projection[1])
    x, labels = draw()
    learnt = ensemble.learn(x, labels, state, shuffle=True)
    assert len({tuple(row.tolist()) for row in learnt.members.last}) > 1


def test_equal_seeds_give_equal_members(ensemble):
    x, labels = draw()
    again, other = (Ensemble(ensemble.model, members=3, seed=seed) for seed in (0, 1))
    first, same, different = (
        each.predict(x, each.learn(x, labels, each.start(3), shuffle=True)) for each in (ensemble, again, other)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, different)


def test_principal_directions_keep_what_differs_most():
    generator = torch.Generator().manual_seed(0)
    wide = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    x = wide @ torch.randn(2, 20, generator=generator, dtype=torch.float64)
    mean, deviation = scale_of(x)
    z = (x - mean) / deviation
    given = z @ principal_projection(x, 4)
    assert torch.allclose(given.square().sum(), torch.tensor(4.0 * 50, dtype=torch.float64))
    # Two directions hold everything, so that distances are kept but for one factor.
    ratio = torch.cdist(given, given)[0, 1:] / torch.cdist(z, z)[0, 1:]
    assert torch.allclose(ratio, ratio[:1].expand_as(ratio))


def test_of_fewer_examples_than_directions_the_others_are_zero():
    x, _ = draw(20)
    basis = principal_projection(x[:3], 6)
    assert basis.shape == (20, 6)
    assert not basis[:, 3:].any()
    assert not principal_projection(x[:1], 6).any()


def test_no_members_are_refused():
    with pytest.raises(ValueError, match="members=0; expected at least 1"):
        Ensemble(network(), members=0)
