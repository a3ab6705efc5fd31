"""Several sequences of the same images."""

import pytest
import torch

from srwm.continual import TasksConfig, draw_sequences
from srwm.continual.replays import replay

from .test_sequences import class_of
from .tiny import bank


def made(replays, labels="class_incremental", sources=("a",), seed=0):
    tasks = TasksConfig(sources=sources, tasks=3, ways=2, shots=2, queries=2, labels=labels, replays=replays)
    images, steps = bank(len(sources)), torch.arange(4)
    drawn = draw_sequences(images, steps, tasks, batch_size=5, seed=seed)
    return images, drawn, replay(drawn, steps, tasks, seed=seed)


@pytest.mark.parametrize("replays", [1, 3])
def test_the_first_is_the_drawn_sequence_itself(replays):
    _, drawn, found = made(replays)
    places = torch.cat([drawn.support, drawn.query], dim=-1).flatten(-2)
    for at, wanted in ((found.support, drawn.support), (found.query, drawn.query)):
        first = at[..., 0, :, :].flatten(-2)
        assert torch.equal(places.gather(-1, first), wanted.flatten(-2))
    assert torch.equal(found.support_labels[..., 0, :, :], drawn.support_labels)
    assert torch.equal(found.query_labels[..., 0, :, :], drawn.query_labels)
    assert found.support.shape == (4, 5, replays, 3, 4)


@pytest.mark.parametrize("labels", ["class_incremental", "domain_incremental"])
@pytest.mark.parametrize("sources", [("a",), ("a", "b")])
def test_each_is_a_proper_sequence_of_all_the_images(labels, sources):
    images, drawn, found = made(3, labels, sources)
    for step in range(4):
        for row in range(5):
            places = torch.cat([drawn.support[step, row], drawn.query[step, row]], dim=-1).flatten()
            for turn in range(3):
                one = [field[step, row, turn] for field in found]
                assert sorted(torch.cat([one[0].flatten(), one[2].flatten()]).tolist()) == list(range(24))
                for number in range(3):
                    classes = {}
                    for at, given in ((one[0][number], one[1][number]), (one[2][number], one[3][number])):
                        for place, label in zip(places[at].tolist(), given.tolist(), strict=True):
                            classes.setdefault(class_of(images, place), []).append(label)
                    first = 2 * number if labels == "class_incremental" else 0
                    assert sorted(map(tuple, classes.values())) == [(first,) * 4, (first + 1,) * 4]
                    assert {source for source, _ in classes} == {int(drawn.source[step, row, number])}


def test_classes_change_places_and_images_change_between_examples_and_queries():
    _, _, found = made(4)
    turns = found.support.flatten(0, 1).flatten(-2)
    assert not any(torch.equal(turns[:, 0], turns[:, turn]) for turn in (1, 2, 3))
    # The class of the first drawn example has every place in some turn.
    of_first = [
        int(found.support_labels[step, row, turn].flatten()[at])
        for step in range(4)
        for row in range(5)
        for turn in range(1, 4)
        for at in (found.support[step, row, turn].flatten() == 0).nonzero()[:, 0]
    ]
    assert set(of_first) == set(range(6))


def test_equal_seeds_give_equal_replays_and_others_do_not():
    assert torch.equal(made(3)[2].support, made(3)[2].support)
    assert not torch.equal(made(3)[2].support[..., 1, :, :], made(3, seed=1)[2].support[..., 1, :, :])
