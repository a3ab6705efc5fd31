"""Steps of tensors compute what the models' own methods compute, over several steps, for every kind and memory."""

import pytest
import torch

from srwm.deploy import step_of
from srwm.nn import SelfReferentialLinear, named_tensors

from .small import GATED, MEMORIES, agent, agent_of_four_memories, few_shot, stream, tracker

CONVOLVED = {"convolution": 4}
CHANGED = [("srwm", GATED), ("srwm", CONVOLVED), ("deltanet", CONVOLVED)]
"""Memories with other options than their defaults."""
TIGHT = {"rtol": 0, "atol": 1e-6}


def inputs_of(step, rows, times, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [step.examples(rows, generator) for _ in range(times)]


def run(step, inputs):
    """Take steps from a new state; list what comes out of each, and give the last state."""
    state, outputs = step.initial_state(len(inputs[0][0])), []
    for given in inputs:
        *answers, state = step(*given, state)
        outputs.append(answers)
    return outputs, state


@pytest.mark.parametrize(("memory", "options"), [*((memory, {}) for memory in MEMORIES), *CHANGED])
def test_a_few_shot_step_predicts_and_then_learns_where_there_is_a_label(memory, options):
    model = few_shot(memory, memory_options=options)
    step = step_of(model)
    inputs = inputs_of(step, rows=2, times=4)
    outputs, end = run(step, inputs)
    assert {int(label) < 0 for _, labels in inputs for label in labels} == {True, False}
    for row in range(2):
        state = None
        for (image, label), (probabilities,) in zip(inputs, outputs, strict=True):
            torch.testing.assert_close(probabilities[row], model.predict(image[row][None], state)[0], **TIGHT)
            if label[row] >= 0:
                state = model.learn(image[row][None], label[row][None], state)
        for name, tensor in named_tensors(state.layers, "state"):
            if name in end:
                torch.testing.assert_close(end[name][row], tensor[0], **TIGHT)


@pytest.mark.parametrize(("memory", "options"), [*((memory, {}) for memory in MEMORIES), *CHANGED])
def test_a_stream_step_answers_as_observe_does(memory, options):
    model = stream(memory, memory_options=options)
    step = step_of(model)
    inputs = inputs_of(step, rows=2, times=4)
    outputs, _ = run(step, inputs)
    for row in range(2):
        state = None
        for (image, label, source), (probabilities,) in zip(inputs, outputs, strict=True):
            known = None if label[row] < 0 else int(label[row])
            wanted, state = model.observe(image[row], known, state, source=model.source_names[source[row]])
            torch.testing.assert_close(probabilities[row], wanted, **TIGHT)


@pytest.mark.parametrize(("memory", "options"), [*((memory, {}) for memory in MEMORIES), *CHANGED])
def test_an_agent_step_says_what_the_agent_says_of_the_whole_sequence(memory, options):
    model = agent(memory, memory_options=options)
    step = step_of(model)
    inputs = inputs_of(step, rows=3, times=5)
    outputs, _ = run(step, inputs)
    answers, _ = model(*(torch.stack(each, dim=1) for each in zip(*inputs, strict=True)))
    logits, values = (torch.stack(each, dim=1) for each in zip(*outputs, strict=True))
    torch.testing.assert_close(logits, answers.logits, **TIGHT)
    torch.testing.assert_close(values, answers.values, **TIGHT)


@pytest.mark.parametrize(("memory", "options"), [*((memory, {}) for memory in MEMORIES), *CHANGED])
def test_a_step_of_symbols_answers_as_the_network_does_of_the_whole_sequence(memory, options):
    model = tracker(memory, memory_options=options)
    step = step_of(model)
    inputs = inputs_of(step, rows=3, times=5)
    outputs, _ = run(step, inputs)
    scores, _ = model(torch.stack([symbols for (symbols,) in inputs], dim=1))
    torch.testing.assert_close(torch.stack([each for (each,) in outputs], dim=1), scores.softmax(dim=-1), **TIGHT)
    assert step.facts == {"symbols": ["1-2", "1-3", "2-3"], "answers": 3}


def test_what_was_learnt_changes_the_answers():
    step = step_of(few_shot())
    generator = torch.Generator().manual_seed(0)
    image, _ = step.examples(1, generator)
    new = step.initial_state(1)
    before, same = step(image, torch.tensor([-1]), new)
    _, after = step(image, torch.tensor([2]), new)
    assert all(torch.equal(same[name], new[name]) for name in new)
    assert not torch.allclose(step(image, torch.tensor([-1]), after)[0], before, atol=1e-3)


def test_a_stream_with_one_scale_has_no_input_for_the_source():
    names = [[slot.name for slot in step_of(stream(normalise=word)).inputs] for word in ("own", "common")]
    assert names == [["image", "previous_label", "source"], ["image", "previous_label"]]


def test_the_state_has_a_name_for_each_tensor_and_none_for_counters_that_do_not_count():
    assert {slot.name: slot.shape for slot in step_of(few_shot("sr_deltanet")).state} == {
        "state.0.slow.change": (2, 4, 25),
        "state.0.fast_weight": (2, 4, 4),
    }
    assert [slot.name for slot in step_of(stream("lstm")).state] == [
        "state.0.features",
        "state.1.hidden",
        "state.1.cell",
    ]
    assert [slot.name for slot in step_of(agent_of_four_memories()).state][:3] == [
        "state.0.change",
        "state.0.steps",
        "state.1.slow.change",
    ]
    assert [slot.name for slot in step_of(agent(detach_every_step=True)).state] == ["state.0.change"]
    assert {slot.name: slot.shape for slot in step_of(few_shot("deltanet", memory_options=CONVOLVED)).state} == {
        "state.0.memory.fast_weight": (2, 4, 4),
        "state.0.recent": (3, 8),
    }
    assert step_of(few_shot("feed_forward")).state == ()


def test_the_model_that_a_step_is_made_of_stays_as_it_is():
    model = few_shot().train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    step = step_of(model)
    run(step, inputs_of(step, rows=2, times=2))
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert {module.backend for module in model.modules() if isinstance(module, SelfReferentialLinear)} == {"auto"}
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
