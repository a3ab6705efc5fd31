"""Sequences of tasks: which classes, images and labels they have, counted by plain loops."""

import pytest
import torch

from srwm.continual import TasksConfig, draw_sequences
from srwm.errors import InputError

from .tiny import bank, config


def drawn(tasks, images=None, steps=0, batch_size=5, **options):
    steps = torch.tensor(steps)
    return draw_sequences(images or bank(len(tasks.sources)), steps, tasks, batch_size=batch_size, seed=3, **options)


def class_of(images, place):
    """The source and the class of an image of a bank."""
    source = max(index for index, first in enumerate(images.firsts) if first <= place)
    one = images.classes[source]
    number = int((one.starts <= place - images.firsts[source]).sum()) - 1
    return source, number


def tasks_of(**values):
    return TasksConfig(**{"sources": ("a",), "tasks": 3, "ways": 2, "shots": 2, "queries": 2, **values})


@pytest.mark.parametrize("labels", ["class_incremental", "domain_incremental"])
@pytest.mark.parametrize("sources", [("a",), ("a", "b")])
def test_examples_and_queries_of_a_class_share_a_label_that_no_other_class_of_the_task_has(labels, sources):
    tasks, images = tasks_of(labels=labels, sources=sources), bank(len(sources))
    found = drawn(tasks, images)
    for row in range(5):
        seen = set()
        for number in range(3):
            places = [*found.support[row, number].tolist(), *found.query[row, number].tolist()]
            given = [*found.support_labels[row, number].tolist(), *found.query_labels[row, number].tolist()]
            assert len(set(places)) == len(places)
            classes = {}
            for place, label in zip(places, given, strict=True):
                classes.setdefault(class_of(images, place), set()).add(label)
            # Two classes, each with one label, and both labels are taken.
            first = 2 * number if labels == "class_incremental" else 0
            assert sorted(label for (label,) in classes.values()) == [first, first + 1]
            assert {source for source, _ in classes} == {int(found.source[row, number])}
            assert not seen & set(classes)
            seen |= set(classes)
        assert len(seen) == 6


def test_every_class_has_as_many_examples_and_queries_as_asked_for():
    found = drawn(tasks_of(shots=3, queries=1))
    for labels, number in ((found.support_labels, 3), (found.query_labels, 1)):
        for row in labels.flatten(0, 1).tolist():
            assert [row.count(label) for label in set(row)] == [number, number]


def test_the_first_source_alternates_from_step_to_step_and_is_the_same_in_a_batch():
    tasks = tasks_of(sources=("a", "b", "c"), tasks=4)
    found = drawn(tasks, steps=[0, 1, 2, 3])
    assert found.source[:, 0].tolist() == [[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2], [0, 1, 2, 0]]
    assert bool((found.source == found.source[:, :1]).all())
    fixed = drawn(tasks, steps=[0, 1], order="fixed")
    assert fixed.source[:, 0].tolist() == [[0, 1, 2, 0]] * 2
    shuffled = drawn(tasks, steps=list(range(40)), order="random").source[:, 0, :3]
    assert {tuple(row) for row in shuffled.tolist()} == {
        (0, 1, 2),
        (0, 2, 1),
        (1, 0, 2),
        (1, 2, 0),
        (2, 0, 1),
        (2, 1, 0),
    }


def test_several_steps_at_once_are_those_steps_one_by_one():
    tasks = tasks_of(sources=("a", "b"))
    together = drawn(tasks, steps=[0, 1, 7])
    for place, step in enumerate([0, 1, 7]):
        assert all(
            torch.equal(one[place], alone) for one, alone in zip(together, drawn(tasks, steps=step), strict=True)
        )


def test_seeds_and_uses_draw_other_sequences():
    tasks, images = tasks_of(), bank()
    base = draw_sequences(images, torch.tensor(0), tasks, batch_size=5, seed=0)
    for options in ({"seed": 1}, {"seed": 0, "rng_stream": 1}):
        assert not torch.equal(
            base.support, draw_sequences(images, torch.tensor(0), tasks, batch_size=5, **options).support
        )


def test_labels_of_a_task_are_permuted_at_random():
    tasks, images = tasks_of(tasks=1), bank(classes=2)
    found = drawn(tasks, images, batch_size=400)
    first_class = torch.tensor([class_of(images, int(place))[1] for place in found.support[:, 0, 0]])
    label = found.support_labels[:, 0, 0]
    assert 0.4 < float((first_class == label).float().mean()) < 0.6


def test_sources_that_have_too_little_are_refused():
    with pytest.raises(InputError, match="source0 has 8 classes; 10-way episodes need at least 10"):
        bank().check_enough(tasks_of(tasks=5))
    with pytest.raises(InputError, match="has 6 images; 5 to learn from and 2 to ask for need 7"):
        bank().check_enough(tasks_of(shots=5))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"classes": 5}, "classes=5; 3 2-way tasks with class_incremental labels need 6"),
        ({"tasks": 0}, "tasks=0; expected at least 1"),
        ({"tasks": 101}, "tasks=101; expected 1 to 100"),
        ({"channels": 2}, "channels=2; expected 1"),
        ({"horizontal_flip": ("b",)}, "horizontal_flip names 'b'"),
        ({"sources": ()}, "sources has 0 names"),
    ],
)
def test_sequences_that_make_no_sense_get_a_sentence(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        tasks_of(**values)


def test_labels_that_a_model_tells_apart_are_as_many_as_needed_or_more():
    assert tasks_of().num_classes == 6
    assert tasks_of(labels="domain_incremental").num_classes == 2
    assert tasks_of(classes=20).num_classes == 20


def test_options_that_exclude_each_other_get_a_sentence():
    with pytest.raises(ValueError, match="carry_state_prob is for domain-incremental labels"):
        config(train={"carry_state_prob": 0.5})
    with pytest.raises(ValueError, match=r"carry_state_prob and tasks\.replays do not go together"):
        config(train={"carry_state_prob": 0.5}, tasks={"replays": 2, "labels": "domain_incremental"})
    with pytest.raises(ValueError, match=r"loss\.sources has 2 factors for 1 sources"):
        config(loss={"sources": (1.0, 2.0)})
