"""Testing by the standard protocol."""

import math

import pytest
import torch

from srwm.data import ImageSet, draw_episodes
from srwm.errors import InputError
from srwm.fewshot import FewShotTaskConfig, evaluate
from srwm.fewshot import evaluation as module
from srwm.fewshot.evaluation import accuracy_by_shots, correct_answers, summarise
from srwm.runs import devices
from srwm.supervised.evaluation import embed
from srwm.supervised.network import to_unit

from .tiny import image_set, model

TASK = FewShotTaskConfig(ways=3, shots=2)


def test_the_intervals_are_those_of_the_text_books():
    right = torch.tensor([[1.0, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
    found = summarise(right)
    assert found.sets == (0.5, 0.75, 1.0)
    assert found.accuracy == 0.75
    assert found.episodes == 12
    # The deviation of 0.5, 0.75 and 1 is 0.25; Student's t with two degrees of freedom is 4.30265.
    assert found.interval_sets == pytest.approx(4.30265 * 0.25 / math.sqrt(3))
    # Nine ones and three zeros.
    assert found.interval_episodes == pytest.approx(1.96 * math.sqrt((9 * 0.25**2 + 3 * 0.75**2) / 11 / 12))


def test_five_sets_take_students_t_and_the_root_of_five():
    right = torch.zeros(5, 100)
    for i, ones in enumerate((90, 92, 94, 96, 98)):
        right[i, :ones] = 1
    assert summarise(right).interval_sets == pytest.approx(2.77645 * math.sqrt(0.001) / math.sqrt(5))


def test_a_single_set_has_no_interval_over_sets_and_a_single_episode_none_at_all():
    assert summarise(torch.ones(1, 5)).interval_sets is None
    assert summarise(torch.ones(1, 5)).interval_episodes == 0
    assert summarise(torch.ones(1, 1)).interval_episodes is None


@pytest.mark.parametrize("floats", [1, 5000])
def test_it_does_not_matter_how_much_is_done_at_once(floats, monkeypatch):
    images, network = image_set(classes=6), model()
    wanted = evaluate(network, images, TASK, sets=2, episodes=30)
    monkeypatch.setattr(devices, "_CPU_FLOATS_AT_ONCE", floats)
    assert evaluate(network, images, TASK, sets=2, episodes=30) == wanted


# From printed tables.
@pytest.mark.parametrize(
    ("freedom", "value"),
    [
        *enumerate((12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216, 2.22814), start=1),
        *((11, 2.20099), (12, 2.17881), (15, 2.13145), (20, 2.08596), (30, 2.04227), (60, 2.0003), (120, 1.97993)),
        (10**9, 1.95996),
    ],
)
def test_students_t_is_that_of_the_tables(freedom, value):
    assert module.t_95(freedom) == pytest.approx(value, abs=1.1e-5)


@pytest.mark.parametrize("freedom", [*range(1, 41), 99, 100, 999, 1000])
def test_students_t_leaves_a_twentieth_outside(freedom):
    """By the finite sums for the share inside (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(module.t_95(freedom) / math.sqrt(freedom))
    odd = freedom % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(1, (freedom - odd) // 2 + 1):
        total += term
        term *= math.cos(angle) ** 2 * ((2 * k) / (2 * k + 1) if odd else (2 * k - 1) / (2 * k))
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    assert inside == pytest.approx(0.95, abs=1e-6)


def test_the_accuracy_is_that_of_the_same_episodes_through_the_network(monkeypatch):
    monkeypatch.setattr(module, "_EPISODES_AT_ONCE", 30)
    monkeypatch.setattr("srwm.supervised.evaluation.IMAGES_AT_ONCE", 7)
    network, images = model(), image_set()
    network(to_unit(images.images)[None, :6], torch.zeros(1, 6, dtype=torch.int64), to_unit(images.images)[None, 6:])
    found = evaluate(network, images, TASK, sets=2, episodes=70, seed=5, rng_stream=8)
    network.eval()
    unit, means = to_unit(images.images), []
    for rng_stream in (8, 9):
        right = []
        for step, size in enumerate((30, 30, 10)):
            drawn = draw_episodes(
                images, torch.tensor(step), batch_size=size, ways=3, shots=2, seed=5, rng_stream=rng_stream
            )
            scores = network(unit[drawn.support], drawn.support_labels, unit[drawn.query])
            right.append((scores.argmax(dim=-1) == drawn.query_labels).float())
        means.append(torch.cat(right).mean().item())
    assert found.sets == pytest.approx(means)
    assert found.episodes == 140


def test_a_network_that_has_learnt_nothing_is_at_chance():
    found = evaluate(model(), image_set(), TASK, sets=2, episodes=2000)
    assert abs(found.accuracy - 1 / 3) < 4 * found.interval_episodes / 1.96


def test_sets_and_seeds_draw_other_episodes_and_the_same_ones_again():
    network, images = model(), image_set()
    features = embed(network, images.images)
    one, two, other, again = (
        correct_answers(network, images, features, TASK, episodes=200, seed=seed, rng_stream=rng_stream)
        for seed, rng_stream in ((0, 2), (0, 3), (1, 2), (0, 2))
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, two)
    assert not torch.equal(one, other)


def test_evaluation_changes_nothing_and_keeps_no_graph():
    network = model()
    before = [tensor.clone() for tensor in network.state_dict().values()]
    evaluate(network, image_set(), TASK, sets=1, episodes=20)
    assert network.training
    assert all(map(torch.equal, network.state_dict().values(), before))
    assert not embed(network, image_set().images).requires_grad


def test_features_come_from_the_running_statistics():
    network, images = model(), image_set()
    few = ImageSet.of_counts("few", images.images[:8], [4, 4], ["a", "b"])
    assert torch.allclose(embed(network, few.images), embed(network, images.images)[:8], atol=1e-6)


def test_accuracy_by_shots_asks_for_each_number_of_images():
    network, images = model(), image_set()
    found = accuracy_by_shots(network, images, 3, [1, 3], episodes=50)
    features = embed(network, images.images)
    for shots, accuracy in zip((1, 3), found, strict=True):
        task = FewShotTaskConfig(ways=3, shots=shots)
        right = correct_answers(network, images, features, task, episodes=50, seed=0, rng_stream=100 + shots)
        assert accuracy == right.mean().item()


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (
            FewShotTaskConfig(ways=3, shots=4),
            "class 'class0' of tiny/train has 4 images; 4 to learn from and 1 to ask for need 5",
        ),
        (FewShotTaskConfig(ways=9), "tiny/train has 8 classes; 9-way episodes need at least 9"),
    ],
)
def test_too_little_to_test_on_gets_a_sentence(task, sentence):
    with pytest.raises(InputError, match=sentence):
        evaluate(model(), image_set(), task, sets=1, episodes=10)
