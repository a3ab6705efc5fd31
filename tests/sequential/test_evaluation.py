"""Testing on streams: every order, no trims, means over streams with their intervals."""

import math

import pytest
import torch

from srwm.errors import InputError
from srwm.runs import devices
from srwm.sequential import evaluate
from srwm.sequential.evaluation import answers, embed

from .tiny import bank, config, model


def test_features_are_those_of_the_images_at_the_scale_of_their_source():
    images, network = bank(), model()
    network.set_statistics(torch.tensor([[0.2], [0.5]]), torch.tensor([[1.0], [0.25]]))
    found = embed(network, images)
    assert network.training
    wanted = network.eval().features(network.normalise(images.images, images.set_of_image()))
    assert torch.allclose(found, wanted, atol=1e-5)


def test_answers_equal_those_of_the_whole_network():
    images, network = bank(), model()
    right, drawn = answers(network, images, embed(network, images), order=(1, 0), streams=5, seed=3, rng_stream=7)
    assert right.shape == (5, 24)
    assert drawn.mask.all()
    assert (drawn.source[:, :12] == 1).all()
    network.eval()
    scores, _ = network(network.normalise(images.images[drawn.place], drawn.source), drawn.previous)
    assert torch.equal(scores.argmax(dim=-1) == drawn.labels, right)


@pytest.mark.parametrize("floats", [1, 5000])
def test_it_does_not_matter_how_much_is_done_at_once(floats, monkeypatch):
    images, network = bank(), model()
    wanted = evaluate(network, images, sets=2, streams=10)
    monkeypatch.setattr(devices, "_CPU_FLOATS_AT_ONCE", floats)
    assert evaluate(network, images, sets=2, streams=10) == wanted


class Oracle:
    """Answers as a rule says, in place of the network."""

    def __init__(self, network, rule):
        self.network, self.rule = network, rule

    def __call__(self, features, previous, state=None):
        return self.rule(previous), state


def with_rule(rule):
    network = model()
    network.answer = Oracle(network, rule)
    return network


def one_hot(labels):
    return torch.eye(3)[labels.clamp(min=0)]


def test_each_measure_is_what_a_plain_loop_finds():
    """A rule that repeats the label before: right where two images of a class follow each other."""
    images, network = bank(), with_rule(one_hot)
    found = evaluate(network, images, sets=2, streams=20, seed=4)
    assert (found.streams, found.instances) == (40, (1, 2, 3))
    assert [order.sources for order in found.orders] == [("a", "b"), ("b", "a")]
    features = embed(network, images)
    totals = []
    for order, measured in zip([(0, 1), (1, 0)], found.orders, strict=True):
        parts = [
            answers(network, images, features, order=order, streams=20, seed=4, rng_stream=2 + i) for i in range(2)
        ]
        right, labels, previous = (
            torch.cat([part[0] for part in parts]),
            torch.cat([part[1].labels for part in parts]),
            torch.cat([part[1].previous for part in parts]),
        )
        assert torch.equal(right, previous.clamp(min=0) == labels)
        assert list(measured.curve) == pytest.approx(right.double().mean(dim=0).tolist())
        for index, segment in enumerate(measured.segments):
            part = slice(12 * index, 12 * index + 12)
            by_stream = right[:, part].double().mean(dim=1)
            totals.append(by_stream.mean().item())
            assert segment.total.mean == pytest.approx(by_stream.mean().item())
            assert segment.total.interval == pytest.approx(1.96 * by_stream.std().item() / math.sqrt(40))
            assert segment.final == pytest.approx(right[:, part][:, -2:].double().mean().item())
            hits = {1: [], 2: [], 3: []}
            for row in range(40):
                seen = [0, 0, 0]
                for step in range(part.start, part.stop):
                    label = int(labels[row, step])
                    seen[label] += 1
                    hits.get(seen[label], []).append(float(right[row, step]))
            assert [value.mean for value in segment.instances] == pytest.approx(
                [sum(each) / len(each) for each in hits.values()]
            )
    assert found.accuracy == pytest.approx(sum(totals) / 4)
    assert sum(found.sets) / 2 == pytest.approx(found.accuracy)


def test_a_model_that_always_says_one_class_is_right_in_its_share():
    found = evaluate(with_rule(lambda previous: one_hot(torch.ones_like(previous))), bank(), sets=1, streams=8)
    assert found.accuracy == pytest.approx(1 / 3)
    assert found.interval == 0
    for order in found.orders:
        assert all(segment.total.mean == pytest.approx(1 / 3) for segment in order.segments)
        assert all(value.mean == pytest.approx(1 / 3) for segment in order.segments for value in segment.instances)


def test_equal_seeds_measure_the_same_and_others_do_not():
    images, network = bank(), model()
    one, same, other = (evaluate(network, images, sets=1, streams=10, seed=seed) for seed in (0, 0, 1))
    assert one == same
    assert one.orders[0].curve != other.orders[0].curve


def test_a_single_stream_has_no_interval():
    found = evaluate(model(), bank(), sets=1, streams=1)
    assert found.interval is None
    assert found.orders[0].segments[0].total.interval is None


def test_three_sources_are_tested_in_three_orders():
    stream = {"sources": ("a", "b", "c")}
    found = evaluate(model(stream=stream), bank(3), sets=1, streams=3)
    assert [order.sources for order in found.orders] == [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")]
    assert all(len(order.curve) == 36 for order in found.orders)


def test_too_few_images_get_a_sentence():
    with pytest.raises(InputError, match="has 4 images; 4 to learn from and 1 to ask for need 5"):
        evaluate(model(), bank(per_class=4))


def test_what_is_tested_does_not_depend_on_trims_and_order_of_the_training():
    images = bank()
    plain, other = (
        evaluate(each, images, sets=1, streams=4)
        for each in (model(), model(stream={"max_trim": 0, "order": "random"}))
    )
    assert plain == other
    assert config().stream.max_trim == 5
