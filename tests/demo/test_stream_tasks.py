"""Tasks are functions of the seed and their number, and show what no model was trained on."""

import pytest
import torch

from srwm.data.strokes import draw_strokes
from srwm.demo import tasks
from srwm.demo.tasks import MAX_SEED, TASK_LENGTHS, draw_task, task_bytes
from srwm.errors import InputError

from .small_stream import SIZE, WAYS, small_stream_model

MODEL = small_stream_model()


def test_a_task_is_a_function_of_the_seed_and_its_number():
    for seed, number in ((0, 0), (7, 3), (MAX_SEED, 10**6)):
        one, other = draw_task(MODEL, seed, number), draw_task(MODEL, seed, number)
        assert torch.equal(one.images, other.images)
        assert one[1:] == other[1:]


def test_every_task_has_characters_of_its_own():
    drawn = [draw_task(MODEL, seed, number) for seed in (0, 1) for number in range(6)]
    images = {image.numpy().tobytes() for task in drawn for image in upright(task)}
    assert len(images) == sum(len(task.images) for task in drawn)


def upright(task):
    return 255 - task.images if task.is_inverted else task.images


def test_tasks_do_not_come_again():
    # In whatever order its images come, a task has the same smallest one.
    smallest = {min(each.numpy().tobytes() for each in upright(draw_task(MODEL, 0, n))) for n in range(300)}
    assert len(smallest) == 300


def test_characters_are_those_of_the_test_split_whatever_the_seed(monkeypatch):
    """Only between the splits of one seed is it promised that no program is in two of them."""
    splits = []
    monkeypatch.setattr(tasks, "draw_strokes", lambda split, **how: splits.append(split) or draw_strokes(split, **how))
    draw_task(MODEL, 0, 0)
    assert splits == ["test"]


def test_no_image_is_one_of_the_training():
    training = {each.numpy().tobytes() for each in draw_strokes("train", image_size=SIZE, per_class=5).images}
    for number in range(10):
        task = draw_task(MODEL, 0, number)
        assert not training & {image.numpy().tobytes() for image in upright(task)}


def test_all_classes_come_equally_often_and_in_no_order():
    task = draw_task(MODEL, 0, 0)
    assert len(task.images) == len(task.labels) >= max(TASK_LENGTHS)
    assert [task.labels.count(label) for label in range(WAYS)] == [len(task.labels) // WAYS] * WAYS
    assert task.labels != sorted(task.labels)
    assert set(task.labels[: 3 * WAYS]) == set(range(WAYS))


def test_images_of_a_class_are_those_of_one_character():
    # Drawings of one character are alike, those of two are not.
    task = draw_task(MODEL, 0, 1)
    pixels = task.images.flatten(1).double()
    labels = torch.tensor(task.labels)
    means = torch.stack([pixels[labels == label].mean(dim=0) for label in range(WAYS)])
    nearest = torch.cdist(pixels, means).argmin(dim=1)
    assert (nearest == labels).double().mean() > 0.85


def test_some_tasks_are_negatives_for_a_model_that_knows_negatives():
    drawn = [draw_task(MODEL, 5, number) for number in range(40)]
    inverted = [task for task in drawn if task.is_inverted]
    assert 10 <= len(inverted) <= 30
    assert all(float(task.images.double().mean()) > 127 for task in inverted)
    assert {task.source for task in inverted} == {"strokes+inverted"}
    assert {task.source for task in drawn if not task.is_inverted} == {"strokes"}


@pytest.mark.parametrize("sources", [("strokes",), ("omniglot", "cifar-fs")])
def test_others_see_bright_ink_only(sources):
    model = small_stream_model(sources=sources, channels=3)
    drawn = [draw_task(model, 5, number) for number in range(12)]
    assert not any(task.is_inverted for task in drawn)
    assert {task.source for task in drawn} == {sources[0]}
    assert drawn[0].images.shape[1:] == (3, SIZE, SIZE)


def test_a_model_of_negatives_alone_has_a_source_for_all():
    model = small_stream_model(sources=("strokes+inverted",))
    drawn = [draw_task(model, 5, number) for number in range(12)]
    assert {task.source for task in drawn} == {"strokes+inverted"}


def test_images_too_small_for_characters_are_refused():
    model = small_stream_model()
    model.image_shape = (1, 7, 7)
    with pytest.raises(InputError, match="image_size=7"):
        draw_task(model, 0, 0)


def test_the_memory_of_a_task_is_known_before_it_is_drawn():
    assert draw_task(MODEL, 0, 0).images.nbytes <= task_bytes(MODEL)
