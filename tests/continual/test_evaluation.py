"""The test on drawn sequences, and what it comes to."""

import dataclasses
import json
import math

import pytest
import torch

from srwm.continual import TaskMatrix, draw_sequences, evaluate, evaluate_orders
from srwm.continual.evaluation import TEST, ContinualTask, InContext, accuracies, embed
from srwm.continual.measures import ContinualEvaluation, measured, task_matrix
from srwm.errors import InputError
from srwm.runs.results import read_part
from srwm.supervised.network import to_unit
from srwm.supervised.statistics import Measured

from .tiny import bank, config, model


def by_hand(one, images, tasks, sequences, seed=0):
    """Accuracy of each sequence on task i after task j, one sequence and one query at a time."""
    drawn = draw_sequences(
        images, torch.tensor(0), tasks, batch_size=sequences, order="fixed", seed=seed, rng_stream=TEST
    )
    found = torch.zeros(sequences, tasks.tasks, tasks.tasks)
    for row in range(sequences):
        state = None
        for after in range(tasks.tasks):
            seen = one.features(to_unit(images.images[drawn.support[row, after]]))[None]
            state = one.learn_features(seen, drawn.support_labels[row, after][None], state)
            for task in range(after + 1):
                right = 0
                for place, label in zip(drawn.query[row, task], drawn.query_labels[row, task], strict=True):
                    query = one.features(to_unit(images.images[place][None]))[None]
                    right += int(one.read_features(query, state)[0, 0].argmax() == label)
                found[row, after, task] = right / drawn.query.shape[-1]
    return found


@pytest.mark.parametrize("labels", ["class_incremental", "domain_incremental"])
@torch.no_grad()
def test_the_matrix_is_what_a_plain_loop_counts(labels):
    one, images = model(tasks={"labels": labels}), bank(seed=1)
    found = evaluate(one, images, one.config.tasks, sequences=7)
    wanted = by_hand(one, images, one.config.tasks, 7)
    assert found.tasks == ("a", "a", "a")
    for after, row in enumerate(found.matrix):
        for task, value in enumerate(row):
            assert value.mean == pytest.approx(float(wanted[:, after, task].mean()))
    assert found.accuracy.mean == pytest.approx(float(wanted[:, 2].mean()))
    lost = (wanted[:, 0, 0] + wanted[:, 1, 1] - wanted[:, 2, 0] - wanted[:, 2, 1]) / 2
    assert found.forgetting.mean == pytest.approx(float(lost.mean()))
    assert found.sequences == 7


def test_every_source_comes_first_once():
    one, images = model(tasks={"sources": ("a", "b"), "tasks": 3}), bank(2)
    found = evaluate_orders(one, images, one.config.tasks, sequences=4)
    assert [order.tasks for order in found.orders] == [("a", "b", "a"), ("b", "a", "b")]
    assert found.accuracy == pytest.approx(sum(order.accuracy.mean for order in found.orders) / 2)
    assert found.interval is None
    alone = evaluate(one, images, one.config.tasks, sequences=4)
    assert found.orders[0] == alone


def test_forgetting_is_minus_the_backward_transfer_and_intervals_are_students():
    values = torch.tensor(
        [
            [[1.0, 0, 0], [0.5, 1.0, 0], [0.25, 0.75, 0.5]],
            [[0.5, 0, 0], [0.5, 0.5, 0], [0.5, 0.5, 1.0]],
            [[0.75, 0, 0], [0.5, 1.0, 0], [0.25, 0.5, 1.0]],
        ]
    )
    found = task_matrix(("x", "y", "z"), values)
    lost = [(0.75 + 0.25) / 2, 0.0, (0.5 + 0.5) / 2]
    mean = sum(lost) / 3
    deviation = math.sqrt(sum((each - mean) ** 2 for each in lost) / 2)
    assert found.forgetting.mean == pytest.approx(mean)
    # Student's t at 97.5% with two degrees of freedom.
    assert found.forgetting.interval == pytest.approx(4.30265 * deviation / math.sqrt(3), rel=1e-5)
    assert found.accuracy.mean == pytest.approx((0.5 + 2 / 3 + 1.75 / 3) / 3)
    assert [len(row) for row in found.matrix] == [1, 2, 3]
    assert found.matrix[1][0].mean == pytest.approx(0.5)


def test_a_single_sequence_has_no_interval_and_a_single_task_no_forgetting():
    assert measured(torch.tensor([0.5])) == Measured(0.5, None)
    found = task_matrix(("x",), torch.tensor([[[0.5]], [[1.0]]]))
    assert found.forgetting is None
    assert found.accuracy.mean == 0.75


def test_a_matrix_of_another_form_is_refused():
    with pytest.raises(ValueError, match=r"rows of \[1, 1\] entries for 2 tasks"):
        TaskMatrix(("x", "y"), ((Measured(1.0, None),),) * 2, Measured(1.0, None), None, 1)


def test_an_evaluation_comes_back_from_json():
    one = model()
    found = ContinualEvaluation.of_orders((evaluate(one, bank(), one.config.tasks, sequences=4),))
    assert read_part(ContinualEvaluation, json.loads(json.dumps(dataclasses.asdict(found)))) == found
    with pytest.raises(InputError, match="orders"):
        read_part(ContinualEvaluation, {"accuracy": 1.0, "interval": None})


def test_asking_changes_nothing():
    one, images = model(), bank()
    features = embed(one, images.images)
    tasks = [
        ContinualTask(
            features[6 * i : 6 * i + 4][None],
            torch.tensor([[i, i, i, i]]),
            features[-6:][None],
            torch.zeros(1, 6).long(),
        )
        for i in range(2)
    ]
    learner = InContext(one)
    with torch.no_grad():
        learner.learn(tasks[0])
        before = [tensor.clone() for tensor in _tensors(learner.state)]
        learner.answer(tasks[1])
    assert all(torch.equal(one, other) for one, other in zip(before, _tensors(learner.state), strict=True))


def _tensors(state):
    from srwm.nn import named_tensors

    return [tensor for _, tensor in named_tensors(state)]


def test_what_is_right_only_when_it_was_learnt_last_shows_as_forgetting():
    class Forgetful:
        """Knows the last task alone."""

        def learn(self, task):
            self.task = task

        def answer(self, task):
            return task.wanted if task is self.task else task.wanted + 1

    blank = torch.zeros(2, 3, 1), torch.zeros(2, 3, dtype=torch.long)
    found = task_matrix(("x", "y", "z"), accuracies(Forgetful(), [ContinualTask(*blank, *blank) for _ in range(3)]))
    assert [[value.mean for value in row] for row in found.matrix] == [[1.0], [0.0, 1.0], [0.0, 0.0, 1.0]]
    assert found.forgetting.mean == 1.0


def test_too_few_classes_are_refused():
    one = model()
    with pytest.raises(InputError, match="8 classes; 10-way"):
        evaluate_orders(one, bank(), dataclasses.replace(config().tasks, tasks=5), sequences=2)
