"""Trainings that go on to longer sequences as they get the shorter ones right."""

import pytest
import torch

from fewshot.tiny import assert_equal_weights, weights
from srwm.languages import CurriculumConfig
from srwm.languages.curriculum import Curriculum
from srwm.languages.tasks import IGNORED
from srwm.languages.trainer import AHEAD
from srwm.runs.config import from_json, override, to_json
from srwm.runs.processes import Processes

from .tiny import CPU, config, trainer


def curriculum(lengths=range(2, 51), **options):
    return Curriculum(CurriculumConfig(**{"first_longest": 4, **options}), lengths, Processes(), CPU)


def counted(one, whole, sequences):
    one.count(torch.tensor(whole), torch.tensor(sequences))
    one.go_on()
    return one.lengths[-1]


def test_without_one_all_lengths_are_drawn_from_the_first_step():
    one = Curriculum(None, range(2, 51), Processes(), CPU)
    one.go_on()
    assert one.lengths == range(2, 51)
    assert (one.metrics(), one.tensors()) == ({}, {})


def test_it_goes_on_once_enough_sequences_are_right_and_begins_to_count_anew():
    one = curriculum()
    assert one.lengths == range(2, 5)
    assert [counted(one, whole, 100) for whole in (0, 89, 90, 100)] == [4, 4, 5, 6]
    assert one.metrics() == {"train/longest": 6}


def test_nothing_counted_is_not_enough():
    one = curriculum()
    one.go_on()
    assert one.lengths[-1] == 4


def test_growth_is_a_share_of_the_longest_and_ends_with_the_last_length():
    one = curriculum(first_longest=20, growth=0.5)
    assert [counted(one, 1, 1) for _ in range(4)] == [30, 45, 50, 50]


def test_only_lengths_that_a_task_has_are_counted():
    one = curriculum(lengths=range(6, 50, 3), first_longest=2, growth=0.5)
    assert one.lengths == range(6, 7, 3)
    assert [counted(one, 1, 1) for _ in range(4)] == [9, 12, 18, 27]


CURRICULUM = {"curriculum": CurriculumConfig(first_longest=2, sequence_accuracy=0.2, growth=0.0)}


def longest_of(one, step):
    return int((one.draw(step).targets != IGNORED).sum(dim=1).max())


def test_the_training_draws_what_the_curriculum_says():
    one = trainer(task=CURRICULUM)
    for step in range(2 * AHEAD + 1):
        one.train_step(step)
    grown = one.metrics()["train/longest"]
    assert 2 < grown <= 4
    assert max(longest_of(one, step) for step in range(60)) == grown


def test_it_goes_on_from_its_tensors_to_the_same_bits():
    def steps(one, numbers):
        for number in numbers:
            one.train_step(number)
        return one

    for middle in (AHEAD - 1, AHEAD, AHEAD + 5):
        one = steps(trainer(task=CURRICULUM), range(middle))
        saved = {group: {name: t.clone() for name, t in each.items()} for group, each in one.tensors().items()}
        steps(one, range(middle, 2 * AHEAD + 2))
        other = steps(trainer(task=CURRICULUM), [0])
        other.load_tensors(saved)
        steps(other, range(middle, 2 * AHEAD + 2))
        assert_equal_weights(weights(one.model), weights(other.model))
        assert one.metrics() == other.metrics()


def test_processes_count_together(monkeypatch):
    def add_a_bad_half(counts):
        counts += torch.tensor([0.0, 100.0])

    monkeypatch.setattr("torch.distributed.all_reduce", add_a_bad_half)
    one = Curriculum(CurriculumConfig(first_longest=4), range(2, 51), Processes(0, 2), CPU)
    assert counted(one, 100, 100) == 4


def test_it_is_set_on_the_command_line_and_survives_json():
    base = config()
    changed = override(base, ["task.curriculum.first_longest=3", "task.curriculum.growth=0.25"])
    assert changed.task.curriculum == CurriculumConfig(first_longest=3, growth=0.25)
    assert from_json(type(base), to_json(changed)) == changed


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"first_longest": 0}, "first_longest=0; expected at least 1"),
        ({"sequence_accuracy": 0.0}, "sequence_accuracy=0.0; expected more than 0, and 1 at most"),
        ({"growth": -0.5}, "growth=-0.5; expected at least 0"),
    ],
)
def test_values_that_make_no_sense_get_a_sentence(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        CurriculumConfig(**values)
