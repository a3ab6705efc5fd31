"""Training streams that begin where the last ones ended."""

import pytest
import torch

from fewshot.tiny import assert_equal_weights, weights
from srwm.errors import InputError
from srwm.nn import named_tensors
from srwm.runs.processes import Processes
from srwm.sequential.carried import Carried
from srwm.sequential.streams import NO_LABEL

from .test_trainer import gradients, steps, streams
from .tiny import config, model, trainer

CARRY = {"train": {"carry_state_prob": 1.0, "grad_accum_steps": 2}}


def marked(one, rows, label):
    """A state whose numbers all are the label, and as many labels."""
    state = one.initial_state(rows)
    for _, tensor in named_tensors(state):
        tensor.fill_(label)
    return state, torch.full((rows,), label)


def numbers(beginning):
    """The one number of each row that `marked` put there, and the labels."""
    each = [tensor.reshape(len(tensor), -1).float().unique(dim=1) for _, tensor in named_tensors(beginning.state)]
    assert all(tensor.shape[1] == 1 for tensor in each)
    return each[0][:, 0].tolist(), beginning.previous.tolist()


@pytest.mark.parametrize("previous_features", [False, True])
@pytest.mark.parametrize("memory", ["srwm", "deltanet", "gated_deltanet", "lstm", "sr_deltanet"])
def test_rows_begin_with_what_they_ended_with(memory, previous_features):
    parts = {"model": {"memory": memory}, "stream": {"feed_previous_features": previous_features}, **CARRY}
    one = model(**parts)
    carried = Carried(one, config(**parts), Processes())
    for first, label in ((0, 1), (2, 2)):
        carried.end(first, *marked(one, 2, label))
    step = torch.tensor(5)
    assert numbers(carried.begin(0, 2, step)) == ([1.0, 1.0], [1, 1])
    assert numbers(carried.begin(2, 2, step)) == ([2.0, 2.0], [2, 2])


def test_the_share_of_rows_that_begin_anew_is_as_wished():
    parts = {"train": {"carry_state_prob": 0.75, "batch_size": 1000, "grad_accum_steps": 1}}
    one = model(**parts)
    carried = Carried(one, config(**parts), Processes())
    carried.end(0, *marked(one, 1000, 1))
    shares = []
    for step in range(2):
        state, labels = numbers(carried.begin(0, 1000, torch.tensor(step)))
        assert [value == 0 for value in state] == [label == NO_LABEL for label in labels]
        shares.append(labels)
    assert shares[0] != shares[1]
    assert all(700 < sum(label == 1 for label in labels) < 800 for labels in shares)


@pytest.mark.parametrize("previous_features", [False, True])
def test_a_stream_that_goes_on_is_read_as_one_with_the_last(previous_features):
    parts = {
        "stream": {"feed_previous_features": previous_features, "max_trim": 0},
        "train": {"carry_state_prob": 1.0, "grad_accum_steps": 1},
    }
    one = trainer(optimizer={"learning_rate": 0.0}, **parts)
    one.train_step(0)
    first, second = streams(one, 0), streams(one, 1)
    one.model.eval()  # the running statistics, so that both readings see the same features
    both = [torch.cat(pair, dim=1) for pair in zip(first, second, strict=True)]
    previous = torch.cat([torch.full_like(both[2][:, :1], NO_LABEL), both[2][:, :-1]], dim=1)
    images = one.model.normalise(one.training.images[both[0]], both[1])
    with torch.no_grad():
        whole, _ = one.model(images, previous)
        half = first.labels.shape[1]
        _, state = one.model(images[:, :half], first.previous)
        one._carried.end(0, state, first.labels[:, -1])
        beginning = one._carried.begin(0, 4, torch.tensor(1))
        continued = torch.cat([beginning.previous[:, None], second.previous[:, 1:]], dim=1)
        scores, _ = one.model(images[:, half:], continued, beginning.state)
    torch.testing.assert_close(scores, whole[:, half:])


def test_what_came_before_changes_the_gradient_and_gets_none():
    anew, on = trainer(train={"carry_state_prob": 0.0}), trainer(train={"carry_state_prob": 1.0})
    steps(anew, [0])
    steps(on, [0])
    assert_equal_weights(weights(anew.model), weights(on.model))  # the first streams are new in both
    apart = [gradients(one, step=1) for one in (anew, on)]
    assert any(not torch.allclose(apart[0][name], apart[1][name]) for name in apart[0])
    assert not any(tensor.requires_grad for tensor in on.tensors()["carried"].values())


@pytest.mark.parametrize("truncate", [None, 7])
def test_it_goes_on_from_its_tensors_to_the_same_bits(truncate):
    parts = {"train": {"carry_state_prob": 0.5, "grad_accum_steps": 2, "truncate": truncate}}
    one = steps(trainer(**parts), range(3))
    saved = {
        group: {name: tensor.clone() for name, tensor in tensors.items()} for group, tensors in one.tensors().items()
    }
    steps(one, range(3, 6))
    again = trainer(**parts)
    again.load_tensors(saved)
    steps(again, range(3, 6))
    assert_equal_weights(weights(one.model), weights(again.model))


def test_two_processes_hold_the_rows_of_one(monkeypatch):
    """The rows of four in two parts: process 0 has the first of each part."""
    parts = {"train": {"carry_state_prob": 1.0, "grad_accum_steps": 2}}
    one = model(**parts)
    two = [Carried(one, config(**parts), Processes(rank=rank, count=2)) for rank in range(2)]
    for place in range(4):
        two[place % 2].end(place, *marked(one, 1, place))
    both = [each.named() for each in two]
    monkeypatch.setattr("srwm.supervised.carried_states.gather_tensors", lambda tensors, processes: both)
    gathered = two[0].tensors()
    assert gathered["labels"].tolist() == [0, 1, 2, 3]
    for each in two:
        each.load_tensors({name: tensor + 4 for name, tensor in gathered.items()})
    assert [each._labels.tolist() for each in two] == [[4, 6], [5, 7]]


def test_a_checkpoint_of_another_batch_is_refused():
    saved = trainer(train={"carry_state_prob": 0.5, "batch_size": 2}).tensors()["carried"]
    with pytest.raises(InputError, match="carried labels does not fit"):
        trainer(train={"carry_state_prob": 0.5})._carried.load_tensors(saved)


def test_without_carrying_nothing_more_is_saved():
    assert "carried" not in trainer().tensors()
