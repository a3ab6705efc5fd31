"""A model at work one image at a time gives what the model gives, and tells what its matrices did."""

import itertools

import numpy as np
import pytest
import torch

from srwm.demo.drawing import LOOKS, draw_image
from srwm.demo.learner import DrawingLearner, Layer, Moment
from srwm.demo.session import Session
from srwm.demo.views import model_view, moment_view
from srwm.errors import RunError
from srwm.ops.checks import state_dtype
from srwm.ops.self_referential.options import Options
from srwm.ops.self_referential.reference import self_referential_reference

from .small import SHAPE, STROKES, small_model


def images():
    return [draw_image(strokes, LOOKS["strokes"], SHAPE) for strokes in STROKES]


def stacked(arrays):
    return torch.stack([torch.from_numpy(array) for array in arrays])


def taught(learner, labels=(0, 1, 2, 3, 4)):
    moments = [learner.start]
    for image, label in zip(images(), labels, strict=True):
        moments.append(learner.step(learner.features(image), label, moments[-1]))
    return moments


def test_steps_and_answers_are_those_of_the_model():
    model = small_model()
    learner = DrawingLearner(model)
    state = model.learn(stacked(images()), torch.arange(5))
    end = taught(learner)[-1]
    for mine, wanted in zip(end.state.layers, state.layers, strict=True):
        assert torch.allclose(mine.change, wanted.change, atol=1e-6)
    answer = learner.answer(learner.features(images()[2]), end)
    assert answer.on == pytest.approx(model.predict(stacked(images()[2:3]), state)[0].tolist(), abs=1e-5)
    assert answer.off == pytest.approx(model.predict(stacked(images()[2:3]))[0].tolist(), abs=1e-5)


def test_what_was_taught_changes_the_answer_but_not_the_one_with_self_modification_off():
    learner = DrawingLearner(small_model())
    features = learner.features(images()[2])
    before, after = (learner.answer(features, moment) for moment in (learner.start, taught(learner)[-1]))
    assert before.on == before.off == after.off
    assert max(abs(a - b) for a, b in zip(before.on, after.on, strict=True)) > 1e-3


def test_changes_are_those_of_the_state():
    learner = DrawingLearner(small_model())
    for moment in taught(learner)[1:]:
        for layer, state in zip(moment.layers, moment.state.layers, strict=True):
            assert torch.equal(layer.change, state.change[0])
    assert not any(layer.change.any() for layer in learner.start.layers)


GATED = {"forget_gates": 2, "key_map": "l2", "forget_bias": -1.0, "forget_max": 0.5}


@pytest.mark.parametrize(
    "options", [{}, {"learning_rates": 1}, {"input_activation": "softmax"}, {"reset_every": 2}, GATED]
)
def test_rates_are_those_by_which_the_matrices_change(options):
    """With these rates and no others, the rule of the paper leads from one moment to the next."""
    model = small_model(memory_options=options)
    learner = DrawingLearner(model)
    inputs = []
    matrix = learner.matrices[0]
    matrix.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
    moments = taught(learner)
    for step, (before, after) in enumerate(itertools.pairwise(moments)):
        rates = after.layers[0].rates
        number = options.get("learning_rates", 4)
        assert rates.shape == (matrix.num_heads, number)
        change = before.layers[0].change
        if "reset_every" in options and step % 2 == 0:
            change = torch.zeros_like(change)
        heads = inputs[step][0, 0].unflatten(-1, (matrix.num_heads, matrix.head_dim))
        heads = heads.softmax(-1) if "input_activation" in options else heads
        weight = matrix.weight.detach() + change
        *_, beta, forget = torch.einsum("hd,hdm->hm", heads, weight).split([24, number, matrix.forget_gates], dim=-1)
        assert torch.allclose(rates, beta.sigmoid(), atol=1e-6)
        lets_go = matrix.forget_min + (matrix.forget_max - matrix.forget_min) * (forget + matrix.forget_bias).sigmoid()
        if matrix.forget_gates:
            assert torch.allclose(after.layers[0].kept, 1 - lets_go, atol=1e-6)
        rule = {name: value for name, value in options.items() if name in Options._fields}
        _, end = self_referential_reference(
            heads[None, None], matrix.weight.detach(), change[None], None, Options(**rule)
        )
        assert torch.allclose(end[0], after.layers[0].change, atol=1e-6)


def test_the_page_is_told_what_gates_keep():
    learner = DrawingLearner(small_model(memory_options=GATED))
    described = model_view("gated", learner, LOOKS["strokes"])["layers"]
    assert described == [{"heads": 2, "rows": 8, "columns": [8, 8, 8, 4, 2], "keeps_least": 0.5}] * 2
    moments = taught(learner)
    assert {layer["kept"] for layer in moment_view(moments[0])} == {None}
    for layer, shown in zip(moments[-1].layers, moment_view(moments[-1]), strict=True):
        np.testing.assert_allclose(shown["kept"], layer.kept.numpy(), atol=1e-6)
        assert layer.kept.shape == (2, 2)
    plain = taught(DrawingLearner(small_model()))[-1]
    assert [shown["kept"] for shown in moment_view(plain)] == [None] * 2


def test_a_drawing_without_a_label_changes_the_matrices_too():
    learner = DrawingLearner(small_model())
    features = learner.features(images()[0])
    unknown, known = (learner.step(features, label, learner.start) for label in (None, 3))
    assert unknown.layers[0].change.any()
    assert not torch.equal(unknown.layers[0].change, known.layers[0].change)


def test_steps_leave_the_moment_before_as_it_was():
    learner = DrawingLearner(small_model())
    moments = taught(learner)
    copies = [[layer.change.clone() for layer in moment.layers] for moment in moments]
    learner.step(learner.features(images()[0]), 0, moments[2])
    for moment, copy in zip(moments, copies, strict=True):
        assert all(torch.equal(layer.change, each) for layer, each in zip(moment.layers, copy, strict=True))


def test_matrices_that_are_no_longer_finite_are_refused():
    learner = DrawingLearner(small_model())
    start = learner.step(learner.features(images()[0]), 0, learner.start)
    broken = start.state.layers[0]._replace(change=torch.full_like(start.state.layers[0].change, torch.inf))
    moment = Moment(start.state._replace(layers=(broken, *start.state.layers[1:])), start.layers)
    with pytest.raises(RunError, match="grown beyond all numbers"):
        learner.step(learner.features(images()[0]), 0, moment)


@pytest.mark.parametrize("memory", ["fake_srwm", "lstm", "sr_deltanet"])
def test_other_memories_work_too(memory):
    learner = DrawingLearner(small_model(memory=memory))
    session = Session(learner)
    for label, image in enumerate(images()):
        session.teach(label, image)
    answer, moment = session.look(images()[0], 5, None)
    assert sum(answer.on) == pytest.approx(1, abs=1e-4)
    assert len(moment.layers) == (2 if memory == "sr_deltanet" else 0)


def test_hooks_are_gone_after_a_step():
    learner = DrawingLearner(small_model())
    taught(learner)
    assert [len(matrix._forward_hooks) for matrix in learner.matrices] == [0, 0]


def test_states_are_kept_in_single_precision():
    learner = DrawingLearner(small_model())
    layer: Layer = taught(learner)[-1].layers[0]
    assert layer.change.dtype == state_dtype(learner.matrices[0].weight) == torch.float32
    assert learner.moment_bytes() == sum(2 * each.change.nbytes for each in learner.start.layers)
