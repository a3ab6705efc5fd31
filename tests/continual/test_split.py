"""Split-X: the classes of a source as tasks, all other images as queries; and what is set beside the network."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from data.test_official_parts import archives
from fewshot.tiny import image_set
from srwm.continual.baselines import FineTuning, NearestMean
from srwm.continual.evaluation import ContinualTask
from srwm.continual.split import SplitSource, evaluate_split, load_split_source
from srwm.data import write_pack
from srwm.data.official_parts import convert_mnist
from srwm.errors import InputError
from srwm.supervised.network import to_unit

from .tiny import config, model


class Spy:
    """Learns nothing, and keeps what it was shown."""

    seen: list

    def __init__(self, model):
        self.tasks = []
        type(self).seen.append(self.tasks)

    def learn(self, task):
        self.tasks.append(task)

    def answer(self, task):
        return task.wanted


@pytest.fixture
def spy():
    return type("Spy", (Spy,), {"seen": []})


def source(per_class=6, classes=6, **options):
    return SplitSource("x", image_set(classes, per_class), None, **options)


def official(per_class=6, classes=6):
    return SplitSource("x", image_set(classes, per_class), image_set(classes, 3, seed=1))


def tasks_of(**values):
    return dataclasses.replace(config().tasks, **values)


def images_of(one, number):
    return one.images[int(one.starts[number]) : int(one.starts[number] + one.counts[number])]


def test_official_test_images_are_the_queries_and_classes_keep_their_order(spy):
    one, where = model(), official()
    found = evaluate_split(one, [where], tasks_of(), draws=3, make_learner=spy)
    assert found.tasks == ("class0, class1", "class2, class3", "class4, class5")
    assert (found.sequences, found.accuracy.mean, found.forgetting.mean) == (3, 1.0, 0.0)
    for tasks in spy.seen:
        for number, task in enumerate(tasks):
            examples, asked = task.images
            for label in (2 * number, 2 * number + 1):
                mine = examples[task.labels[0] == label]
                assert len(mine) == 2
                assert all(any(torch.equal(each, other) for other in images_of(where.examples, label)) for each in mine)
                assert torch.equal(asked[task.wanted[0] == label], images_of(where.questions, label))
    shown = [torch.cat([task.images[0] for task in tasks]) for tasks in spy.seen]
    assert not torch.equal(shown[0], shown[1])


def test_without_official_test_images_all_that_are_no_examples_are_queries(spy):
    one, where = model(), source()
    evaluate_split(one, [where], tasks_of(labels="domain_incremental"), draws=1, make_learner=spy)
    ((first, *_),) = spy.seen
    examples, asked = first.images
    assert (len(examples), len(asked)) == (4, 8)
    for label in (0, 1):
        together = torch.cat([examples[first.labels[0] == label], asked[first.wanted[0] == label]])
        mine = images_of(where.examples, label)
        assert sorted(each.sum().item() for each in together) == sorted(each.sum().item() for each in mine)


def test_more_classes_than_needed_are_drawn_anew_for_each_sequence(spy):
    where = source(classes=12)
    found = evaluate_split(model(), [where], tasks_of(), draws=4, make_learner=spy)
    assert found.tasks == ("x", "x", "x")
    shown = {tuple(task.images[0].flatten().tolist()) for tasks in spy.seen for task in tasks}
    assert len(shown) == 12


def test_tasks_take_turns_among_sources(spy):
    light, dark = source(classes=4), SplitSource("dark", image_set(2, 6, seed=5), None)
    found = evaluate_split(model(), [light, dark], tasks_of(), draws=1, make_learner=spy)
    assert found.tasks == ("x", "dark", "x")
    ((_, second, _),) = spy.seen
    assert second.labels.min() == 2
    assert all(any(torch.equal(each, other) for other in dark.examples.images) for each in second.images[0])


def test_the_features_are_those_of_the_network(spy):
    one = model()
    evaluate_split(one, [official()], tasks_of(), draws=1, make_learner=spy)
    ((first, *_),) = spy.seen
    with torch.no_grad():
        assert torch.allclose(first.support[0], one.features(to_unit(first.images[0])), atol=1e-6)
        assert torch.allclose(first.query[0], one.features(to_unit(first.images[1])), atol=1e-6)


def test_equal_seeds_draw_equal_examples_and_others_do_not(spy):
    for seed in (0, 0, 1):
        evaluate_split(model(), [official()], tasks_of(), draws=1, seed=seed, make_learner=spy)
    shown = [torch.cat([task.images[0] for task in tasks]) for tasks in spy.seen]
    assert torch.equal(shown[0], shown[1])
    assert not torch.equal(shown[0], shown[2])


@pytest.mark.parametrize(
    ("where", "values", "sentence"),
    [
        (source(classes=4), {}, "has 4 classes; its tasks need 6"),
        (source(), {"shots": 6}, "has 6 images; 6 examples and something to ask for need more"),
        (source(), {"tasks": 4, "classes": None}, "need 8 labels; the model tells 6 apart"),
    ],
)
def test_what_cannot_be_tested_gets_a_sentence(where, values, sentence):
    with pytest.raises(InputError, match=sentence):
        evaluate_split(model(), [where], tasks_of(**values), draws=1)


def test_sources_by_name(tmp_path, empty_data_folder_of_continual):
    made, images = archives(tmp_path)
    write_pack(convert_mnist(made, empty_data_folder_of_continual / "mnist.npz", lambda text: None))
    tasks = tasks_of(image_size=28)
    mnist = load_split_source("mnist", tasks)
    assert mnist.keeps_order
    assert np.array_equal(mnist.questions.images.reshape(10, -1, 28, 28).numpy(), images["t10k"])
    assert len(load_split_source("mnist", tasks, "validation").questions.images) == 20
    inverted = load_split_source("mnist", tasks, invert=True)
    assert torch.equal(inverted.examples.images, 255 - mnist.examples.images)
    strokes = load_split_source("strokes", tasks_of(image_size=16))
    assert strokes.questions is None
    assert strokes.examples.num_classes == 400


def test_nearest_mean_answers_with_the_class_of_the_nearest_mean_of_any_task():
    learner = NearestMean(model())
    places = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    for number in range(2):
        known = places[2 * number : 2 * number + 2].repeat(2, 1) + torch.tensor([[1.0], [1], [-1], [-1]])
        learner.learn(
            ContinualTask(known[None], torch.tensor([[0, 1, 0, 1]]), known[None], torch.tensor([[0, 1, 0, 1]]))
        )
    asked = (places + 2)[None]
    answers = learner.answer(ContinualTask(asked, torch.zeros(1, 4).long(), asked, torch.zeros(1, 4).long()))
    assert answers.tolist() == [[0, 1, 0, 1]]


def test_nearest_mean_forgets_nothing_when_labels_are_new():
    found = evaluate_split(model(), [source()], tasks_of(), draws=3, make_learner=NearestMean)
    assert found.matrix[0][0].mean >= found.matrix[2][0].mean > 1 / 2


def test_fine_tuning_learns_the_last_task_forgets_the_first_and_leaves_the_network_alone():
    one = model(model={"encoder_channels": 8})
    before = {name: tensor.clone() for name, tensor in one.state_dict().items()}

    def make(network):
        return FineTuning(network, steps=40, learning_rate=0.05)

    found = evaluate_split(one, [source()], tasks_of(), draws=2, make_learner=make)
    assert found.matrix[0][0].mean > 0.9
    assert found.matrix[2][0].mean < 0.5
    assert all(torch.equal(tensor, before[name]) for name, tensor in one.state_dict().items())


def test_fine_tuning_takes_steps_of_plain_gradient_descent():
    one = model()
    learner = FineTuning(one, steps=1, learning_rate=0.1)
    images = image_set(2, 2).images
    labels = torch.tensor([0, 0, 1, 1])
    features = one.features(to_unit(images))
    head = torch.nn.Linear(features.shape[1], one.ways)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    F.cross_entropy(head(features), labels).backward()
    learner.learn(
        ContinualTask(features.detach()[None], labels[None], features.detach()[None], labels[None], (images, images))
    )
    assert torch.allclose(learner._head.bias, -0.1 * head.bias.grad, atol=1e-7)
    assert torch.allclose(learner._head.weight, -0.1 * head.weight.grad, atol=1e-7)


def test_fine_tuning_needs_images():
    blank = ContinualTask(
        torch.zeros(1, 2, 4), torch.zeros(1, 2).long(), torch.zeros(1, 2, 4), torch.zeros(1, 2).long()
    )
    with pytest.raises(ValueError, match="this task has no images"):
        FineTuning(model()).learn(blank)
