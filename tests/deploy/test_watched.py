"""Watched steps answer as plain ones do, and say what the model does to its own matrices."""

import pytest
import torch

from srwm.deploy import step_of, watched_step_of
from srwm.inspect import Recorder

from .small import GATED, few_shot, stream, tracker
from .test_steps import inputs_of

NAMES = ["change.0", "rates.0"]
GATED_NAMES = [*NAMES, "kept.0"]


def run(step, inputs):
    """Take steps from a new state; give what comes out of each by name, and the states."""
    state, outputs, states = step.initial_state(len(inputs[0][0])), [], []
    for given in inputs:
        *answers, state = step(*given, state)
        outputs.append({slot.name: answer for slot, answer in zip(step.outputs, answers, strict=True)})
        states.append(state)
    return outputs, states


def assert_recorded(inspection, outputs):
    """What steps gave is what `Recorder` saw."""
    for place, record in enumerate(inspection):
        for t, step in enumerate(outputs):
            assert torch.equal(step[f"rates.{place}"], record.beta[:, t])
            torch.testing.assert_close(step[f"change.{place}"], record.changes()[:, t], rtol=0, atol=1e-6)
            if record.forget_gates:
                assert torch.equal(step[f"kept.{place}"], 1 - record.forget[:, t])


@pytest.mark.parametrize("kind", [stream, tracker])
@pytest.mark.parametrize("options", [{}, GATED])
def test_a_watched_step_answers_as_the_plain_one_and_shows_what_a_recorder_sees(kind, options):
    model = kind(memory_options=options)
    step, plain = watched_step_of(model), step_of(model)
    assert [slot.name for slot in step.outputs] == ["probabilities", *(GATED_NAMES if options else NAMES)]
    inputs = inputs_of(step, rows=2, times=4)
    outputs, states = run(step, inputs)
    with Recorder(plain.model.sequence) as recorder:
        wanted, wanted_states = run(plain, inputs)
    assert_recorded(recorder.finish(), outputs)
    for one, other in zip(outputs, wanted, strict=True):
        assert torch.equal(one["probabilities"], other["probabilities"])
    assert all(torch.equal(states[-1][name], tensor) for name, tensor in wanted_states[-1].items())


def test_of_a_model_without_self_referential_matrices_there_is_nothing_more_to_see():
    assert [slot.name for slot in watched_step_of(tracker("deltanet")).outputs] == ["probabilities"]


def test_a_model_with_one_scale_is_watched_without_a_source():
    assert [slot.name for slot in watched_step_of(stream(normalise="common")).inputs] == ["image", "previous_label"]


@pytest.mark.parametrize("options", [{}, GATED])
@pytest.mark.parametrize("label_slot", ["no_label", "class_zero"])
def test_a_watched_few_shot_step_answers_with_and_without_what_it_learnt_and_always_steps_on(options, label_slot):
    model = few_shot(memory_options=options, label_slot=label_slot)
    step = watched_step_of(model)
    images = [image for image, _ in inputs_of(step, rows=1, times=4)]
    labels = [0, 2, None, 1]
    given = [
        (image, torch.tensor([-1 if label is None else label])) for image, label in zip(images, labels, strict=True)
    ]
    outputs, states = run(step, given)
    state = None
    with Recorder(model.sequence) as recorder:
        for image, label, told in zip(images, labels, outputs, strict=True):
            assert torch.allclose(told["probabilities"], model.predict(image, state), atol=1e-6)
            assert torch.allclose(told["unmodified_probabilities"], model.predict(image), atol=1e-6)
            features = model.features(image[:, None].float() / 255)
            asked = model.inputs(features, None if label is None else torch.tensor([[label]]))
            with torch.no_grad():
                _, state = model.sequence(asked, state)
    assert_recorded(recorder.finish(), outputs)
    assert torch.allclose(states[-1]["state.0.change"], state.layers[0].change, atol=1e-6)
